"""The connections of an application that uvicorn serves.

`http1.py` imports this file at the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from cogwork.wire.transports.asgi import Application
from cogwork.wire.transports.http1_protocol import Http1Protocol

_MAX_HEAD_SIZE = 68 * 1024
"""Maximum bytes of a request's head: 64 kB of call metadata, and the headers of HTTP."""
_SHUTDOWN_GRACE = 1.0
"""Seconds that responses in progress get to finish when the server stops."""


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


def _suppress_cancellation(application: Application) -> Application:
    """Suppress cancellation, which happens only when the server stops and is not an error."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await application(scope, receive, send)

    return run
