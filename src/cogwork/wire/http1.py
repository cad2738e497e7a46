"""Serves HTTP/1.1 with uvicorn's protocol, without its server loop: the listener accepts for us.

Most machines never receive an HTTP/1.1 request, so uvicorn and the application are imported with
the first such connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from cogwork.core.workers import Workers
from cogwork.wire.connections import ConnectionState

Application = Callable[..., Any]
"""An ASGI application."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every response, including responses to malformed requests."""

ABORT_KEY = "abort"
"""Key in the ASGI scope's state of a function that aborts the connection."""

_HEADERS_TIMEOUT = 10.0
"""Maximum seconds for a client to send the head of a request."""
_WRITE_TIMEOUT = 10.0
"""Maximum seconds for a client to read, once the write buffer is full."""
_WRITE_BUFFER_LIMIT = 16 * 1024
"""Bytes that are buffered for a client before writing pauses."""
_SHUTDOWN_GRACE = 1.0
"""Seconds that responses in progress get to finish when the server stops."""


class Http1Server:
    def __init__(self, application: Callable[[], Application]) -> None:
        """`application` imports what it needs and returns the ASGI application."""
        self._make_application = application
        self._server: Any = None
        self._loading: asyncio.Future[None] | None = None

    @property
    def connection_count(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    async def take_over(self, connection: socket.socket, on_close: Callable[[], None]) -> Any:
        await self._load()
        _, protocol = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._server.make_protocol(on_close), connection
        )
        return protocol

    async def aclose(self) -> None:
        if self._loading is not None:
            await asyncio.wait({self._loading})
        if self._server is not None:
            await self._server.aclose()

    async def _load(self) -> None:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._import())
        await asyncio.shield(self._loading)

    async def _import(self) -> None:
        thread = Workers("http-import")
        try:
            make = await thread.run(_make_server_class)
            self._server = await thread.run(lambda: make(self._make_application()))
        finally:
            thread.close()


def _make_server_class() -> Callable[[Application], Any]:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState

    class Http1Protocol(H11Protocol):
        """A protocol that closes slow connections.

        A client must finish the head of its request in time, and read the response in time.
        """

        on_close: Callable[[], None]
        last_active: float
        _headers_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            transport.set_write_buffer_limits(high=_WRITE_BUFFER_LIMIT)
            self.app_state[ABORT_KEY] = transport.abort
            super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                self.last_active = time.monotonic()
                self._cancel_headers_timer()
            elif self._headers_timer is None and not self.transport.is_closing():
                self._headers_timer = self.loop.call_later(_HEADERS_TIMEOUT, self.transport.close)

        @property
        def state(self) -> ConnectionState:
            cycle: Any = self.cycle
            if cycle is None or self.conn.their_state is h11.SEND_BODY:
                return ConnectionState.UNUSED  # even if it was answered before its body arrived
            return ConnectionState.IDLE if cycle.response_complete else ConnectionState.BUSY

        def close(self) -> None:
            self.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.on_close()
            self._cancel_headers_timer()
            self._cancel_write_timer()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            self._cancel_write_timer()
            self._write_timer = self.loop.call_later(_WRITE_TIMEOUT, self.transport.abort)
            super().pause_writing()

        def resume_writing(self) -> None:
            self._cancel_write_timer()
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            """Reject a malformed request, unless its response has already begun."""
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                if self.cycle is not None:
                    self.cycle.disconnected = True  # the application must not respond as well
                for event in _bad_request_events(msg):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def finish(self) -> None:
            """Close the connection after the response in progress."""
            cycle: Any = self.cycle
            if cycle is None or cycle.response_complete:
                self.transport.close()
            else:
                cycle.keep_alive = False

        def _cancel_headers_timer(self) -> None:
            if self._headers_timer is not None:
                self._headers_timer.cancel()
                self._headers_timer = None

        def _cancel_write_timer(self) -> None:
            if self._write_timer is not None:
                self._write_timer.cancel()
                self._write_timer = None

    def _bad_request_events(text: str) -> list[Any]:
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "Connection": "close",
            **SECURITY_HEADERS,
        }
        return [
            h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
            h11.Data(data=text.encode()),
            h11.EndOfMessage(),
        ]

    class UvicornServer:
        def __init__(self, application: Application) -> None:
            self._config = uvicorn.Config(
                _suppress_cancellation(application),
                interface="asgi3",
                http=Http1Protocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
            )
            self._config.load()
            self._state = ServerState()

        @property
        def connections(self) -> set[Any]:
            return self._state.connections

        def make_protocol(self, on_close: Callable[[], None]) -> Http1Protocol:
            protocol = Http1Protocol(config=self._config, server_state=self._state, app_state={})
            protocol.on_close = on_close
            protocol.last_active = time.monotonic()
            return protocol

        async def aclose(self) -> None:
            connections, tasks = self._state.connections, self._state.tasks
            for protocol in tuple(connections):
                cast("Http1Protocol", protocol).finish()
            if tasks:
                await asyncio.wait(tuple(tasks), timeout=_SHUTDOWN_GRACE)
            for protocol in tuple(connections):
                protocol.transport.abort()
            while connections:  # noqa: ASYNC110 - the transports remove them within an iteration
                await asyncio.sleep(0)
            for task in tuple(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return UvicornServer


def _suppress_cancellation(application: Application) -> Application:
    """Suppress cancellation, which only happens when the server stops and is not an error."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await application(scope, receive, send)

    return run
