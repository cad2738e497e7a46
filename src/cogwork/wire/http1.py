"""HTTP/1.1 by uvicorn, whose server loop we do not need: the front accepts for us.

Most machines are never asked over HTTP/1.1, so uvicorn and the application it serves are imported
when the first such connection comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, cast

from cogwork.core.workers import Workers

Application = Callable[..., Any]
"""As ASGI has it."""

_HEADERS_WITHIN = 10.0
"""Seconds a client may take for the head of a request."""
_GRACE = 1.0
"""Seconds that answers under way get when the server stops."""


class Http1:
    def __init__(self, application: Callable[[], Application]) -> None:
        """The function makes the application, and imports what it stands on."""
        self._make_application = application
        self._server: Any = None
        self._loading: asyncio.Future[None] | None = None

    @property
    def connections(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    async def take(self, connection: socket.socket) -> None:
        await self._load()
        await asyncio.get_running_loop().connect_accepted_socket(self._server.protocol, connection)

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
            make = await thread.run(_uvicorn_server)
            self._server = await thread.run(lambda: make(self._make_application()))
        finally:
            thread.close()


def _uvicorn_server() -> Callable[[Application], Any]:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState

    class Protocol(H11Protocol):
        """Closes the connection of a client that does not finish the head of its request."""

        _overdue: asyncio.TimerHandle | None = None

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._in_time()
            elif self._overdue is None and not self.transport.is_closing():
                self._overdue = self.loop.call_later(_HEADERS_WITHIN, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._in_time()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """A body may turn bad when the answer is already given."""
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                super().send_400_response(msg)
            else:
                self.transport.close()

        def finish(self) -> None:
            """After the answer that is under way."""
            cycle: Any = self.cycle
            if cycle is None or cycle.response_complete:
                self.transport.close()
            else:
                cycle.keep_alive = False

        def _in_time(self) -> None:
            if self._overdue is not None:
                self._overdue.cancel()
                self._overdue = None

    class Server:
        def __init__(self, application: Application) -> None:
            self._config = uvicorn.Config(
                _ending_quietly(application),
                interface="asgi3",
                http=Protocol,
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

        def protocol(self) -> Protocol:
            return Protocol(config=self._config, server_state=self._state, app_state={})

        async def aclose(self) -> None:
            connections, tasks = self._state.connections, self._state.tasks
            for protocol in tuple(connections):
                cast("Protocol", protocol).finish()
            if tasks:
                await asyncio.wait(tuple(tasks), timeout=_GRACE)
            for protocol in tuple(connections):
                protocol.transport.abort()
            while connections:  # noqa: ASYNC110 - the transports tell them within a turn or two
                await asyncio.sleep(0)
            for task in tuple(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return Server


def _ending_quietly(application: Application) -> Application:
    """It is only ever cancelled when the server stops, which is no failure to report."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await application(scope, receive, send)

    return run
