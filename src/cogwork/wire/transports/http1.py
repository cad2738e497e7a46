"""Serves HTTP/1.1 on a private Unix socket, with uvicorn's protocol but without its server loop.

Most machines never receive an HTTP/1.1 request, so uvicorn and the application are imported at the
first connection.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import Workers
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.acceptor import Acceptor
from cogwork.net.listen_sockets import open_unix_listener
from cogwork.wire.transports.asgi import CLIENT_KEY, Application

if TYPE_CHECKING:
    from cogwork.wire.transports.uvicorn_server import UvicornServer

_log = logging.getLogger("rdk.networking")


class Http1Server:
    def __init__(
        self, application: Callable[[], Application], proxies: TrustedProxies | None = None
    ) -> None:
        """`application` imports its dependencies and returns the ASGI application."""
        self._make_application = application
        self._proxies = proxies if proxies is not None else TrustedProxies()
        self._server: UvicornServer | None = None
        self._loading: asyncio.Future[UvicornServer] | None = None
        self._acceptor: Acceptor | None = None
        self._starting: set[asyncio.Task[None]] = set()

    @property
    def connection_count(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    def listen(self, path: Path) -> None:
        """Listen on a Unix socket. Its only client is the relay, which limits the number of
        connections."""
        listener = open_unix_listener(str(path))
        self._acceptor = Acceptor(listener, self._start, _report_pause)

    async def aclose(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        if self._starting:
            await asyncio.wait(self._starting)
        if self._server is not None:
            await self._server.aclose()

    def _start(self, connection: socket.socket, _: object) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            server = await self._load()
            await asyncio.get_running_loop().connect_accepted_socket(
                server.make_protocol, connection
            )
        except Exception as error:
            _log.error("cannot serve an HTTP connection: %s", error)
            connection.close()

    async def _load(self) -> UvicornServer:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._import())
        return await asyncio.shield(self._loading)

    async def _import(self) -> UvicornServer:
        thread = Workers("http-import")
        try:
            self._server = await thread.run(self._make_server)
        finally:
            thread.close()
        return self._server

    def _make_server(self) -> UvicornServer:
        from cogwork.wire.transports.uvicorn_server import UvicornServer

        return UvicornServer(_with_forwarded_client(self._make_application(), self._proxies))


def _report_pause(error: OSError) -> None:
    _log.error("cannot accept HTTP connections: %s; retrying", os_reason(error))


def _with_forwarded_client(application: Application, proxies: TrustedProxies) -> Application:
    """Set the client of each request from the headers of a trusted proxy, whose connection may
    carry requests of several clients."""

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
