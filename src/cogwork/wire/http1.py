"""Serves HTTP/1.1 on a private Unix socket, with uvicorn's protocol but without its server loop.

Most machines never receive an HTTP/1.1 request, so uvicorn and the application are imported with
the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from cogwork.core.workers import Workers
from cogwork.front.peer_name import parse_socket_name
from cogwork.front.trusted_proxies import TrustedProxies

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
CLIENT_KEY = "client"
"""Key in the ASGI scope's state of the client, as a `Peer`."""

_ACCEPT_PAUSE = 0.5
"""Seconds to wait before accepting again after the process ran out of descriptors."""
_HEADERS_TIMEOUT = 10.0
"""Maximum seconds for a client to send the head of a request."""
_WRITE_TIMEOUT = 10.0
"""Maximum seconds for a client to read, once the write buffer is full."""
_CHUNK_SIZE = 16 * 1024
"""Bytes that are parsed at once."""
_MAX_HEAD_SIZE = 68 * 1024
"""Bytes of the head of a request: 64 kB of call metadata, and the headers of HTTP."""
_WRITE_BUFFER_LIMIT = 16 * 1024
"""Bytes that are buffered for a client before writing pauses."""
_SHUTDOWN_GRACE = 1.0
"""Seconds that responses in progress get to finish when the server stops."""

_log = logging.getLogger("rdk.networking")


class Http1Server:
    def __init__(
        self, application: Callable[[], Application], proxies: TrustedProxies | None = None
    ) -> None:
        """`application` imports what it needs and returns the ASGI application."""
        self._make_application = application
        self._proxies = proxies if proxies is not None else TrustedProxies()
        self._server: Any = None
        self._loading: asyncio.Future[None] | None = None
        self._listener: socket.socket | None = None
        self._starting: set[asyncio.Task[None]] = set()

    @property
    def connection_count(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    def listen(self, path: Path) -> None:
        """Listen on a Unix socket. The relay, its only client, limits the connections."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.setblocking(False)
        listener.bind(str(path))
        listener.listen(socket.SOMAXCONN)
        self._listener = listener
        self._accept_from(listener)

    async def aclose(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        if self._starting:
            await asyncio.wait(self._starting)
        if self._server is not None:
            await self._server.aclose()

    def _accept_from(self, listener: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.error("cannot accept HTTP connections: %s; retrying", error.strerror)
            loop.remove_reader(listener.fileno())
            loop.call_later(_ACCEPT_PAUSE, self._resume, listener)
            return
        connection.setblocking(False)
        task = loop.create_task(self._serve(connection))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _resume(self, listener: socket.socket) -> None:
        if listener is self._listener:
            self._accept_from(listener)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._load()
            await asyncio.get_running_loop().connect_accepted_socket(
                self._server.make_protocol, connection
            )
        except Exception as error:
            _log.error("cannot serve an HTTP connection: %s", error)
            connection.close()

    async def _load(self) -> None:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._import())
        await asyncio.shield(self._loading)

    async def _import(self) -> None:
        thread = Workers("http-import")
        try:
            make = await thread.run(_make_server_class)
            self._server = await thread.run(
                lambda: make(_with_forwarded_client(self._make_application(), self._proxies))
            )
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

        _headers_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            transport.set_write_buffer_limits(high=_WRITE_BUFFER_LIMIT)
            peer = parse_socket_name(transport.get_extra_info("peername"))
            self.app_state |= {ABORT_KEY: transport.abort, CLIENT_KEY: peer}
            super().connection_made(transport)
            self.client = peer.host_and_port
            self.server = ("localhost", 0)

        def data_received(self, data: bytes) -> None:
            # h11 limits the head of a request, unless it arrives at once.
            for start in range(0, len(data), _CHUNK_SIZE):
                super().data_received(data[start : start + _CHUNK_SIZE])
                if self.transport.is_closing():
                    return
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._cancel_headers_timer()
            elif self._headers_timer is None and not self.transport.is_closing():
                self._headers_timer = self.loop.call_later(_HEADERS_TIMEOUT, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
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
                h11_max_incomplete_event_size=_MAX_HEAD_SIZE,
            )
            self._config.load()
            self._state = ServerState()

        @property
        def connections(self) -> set[Any]:
            return self._state.connections

        def make_protocol(self) -> Http1Protocol:
            return Http1Protocol(config=self._config, server_state=self._state, app_state={})

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


def _with_forwarded_client(application: Application, proxies: TrustedProxies) -> Application:
    """Let the client be the one that a trusted proxy names, which may differ by request."""

    def run(scope: Any, receive: Any, send: Any) -> Any:
        if proxies:
            state = scope["state"]
            headers = (
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in scope["headers"]
            )
            state[CLIENT_KEY] = proxies.find_client(state[CLIENT_KEY], headers)
        return application(scope, receive, send)

    return run


def _suppress_cancellation(application: Application) -> Application:
    """Suppress cancellation, which only happens when the server stops and is not an error."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await application(scope, receive, send)

    return run
