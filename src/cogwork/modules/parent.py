"""The socket by which modules reach the machine that they belong to."""

from __future__ import annotations

from pathlib import Path

import grpc.aio

from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.lasting import LastingServer

GRACE = 1.0


class Parent:
    """In a directory that nobody else can look into: whoever reaches it may do everything."""

    def __init__(self, table: HandlerTable, directory: Path) -> None:
        self._table = table
        self._socket = directory / "parent.sock"
        self._server = LastingServer(self._listening)

    @property
    def address(self) -> str:
        return str(self._socket)

    async def start(self) -> None:
        await self._server.start()

    async def aclose(self) -> None:
        await self._server.stop(GRACE)

    async def _listening(self) -> grpc.aio.Server:
        server = grpc_server(self._table)
        server.add_insecure_port(f"unix:{self._socket}")
        await server.start()
        return server
