"""The machine's handler table, reachable: the gRPC listener and the public port before it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import grpc.aio

from cogwork.server.address import Address, Listen
from cogwork.wire.front import CannotListen, Front, OnClient
from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.http1 import Application, Http1
from cogwork.wire.lasting import LastingServer

GRACE = 1.0
"""Seconds that calls get to end when the server stops."""

_log = logging.getLogger("rdk.networking")


class Listeners:
    def __init__(
        self,
        table: HandlerTable,
        application: Callable[[], Application],
        directory: Path,
        on_client: OnClient = lambda *_: None,
    ) -> None:
        self._table = table
        self._sockets = (directory / f"grpc{number}" for number in itertools.count(1))
        self._front = Front(directory / "grpc", Http1(application))
        self._front.on_client = on_client
        self._server = LastingServer(self._grpc_server)
        self._public: Address | None = None
        self._grpc: Address | None = None
        self._wanted: Listen | None = None
        self._changing = asyncio.Lock()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return self._front.addresses

    async def start(self, listen: Listen) -> None:
        """Raises CannotListen."""
        self._grpc = listen.grpc
        await self._server.start()
        await self._front.listen(*listen.public)
        self._public = listen.public
        self._wanted = listen
        _warn(listen)

    async def change(self, listen: Listen) -> None:
        """Open connections stay. An address that cannot be had leaves everything as it is."""
        before, self._wanted = self._wanted, listen
        if before is not None and listen.grpc not in (before.grpc, self._grpc):
            _log.warning(
                "network.grpc_address takes effect when the server is started again; until then "
                "it is %s",
                self._grpc or "not served",
            )
        async with self._changing:
            # Another change may have come while this one waited.
            if listen is self._wanted and listen.public != self._public:
                await self._change(listen)

    async def _change(self, listen: Listen) -> None:
        try:
            await self._front.listen(*listen.public)
        except CannotListen as error:
            _log.error("%s; still listening on %s", error, self._public)
            return
        self._public = listen.public
        _log.info("listening on %s", " and ".join(str(Address(*at)) for at in self.addresses))
        _warn(listen)

    def refuse_newcomers(self) -> None:
        self._front.stop_listening()

    async def aclose(self) -> None:
        stopping = asyncio.ensure_future(self._server.stop(GRACE))
        await asyncio.wait({stopping}, timeout=2 * GRACE)
        # A client that reads nothing keeps gRPC from closing its connection, so we cut it.
        await self._front.aclose()
        await asyncio.wait({stopping}, timeout=GRACE)
        stopping.cancel()

    async def _grpc_server(self) -> grpc.aio.Server:
        server = grpc_server(self._table, self._front.peer)
        # One of its own: the server before may not have removed its socket yet.
        socket = next(self._sockets)
        server.add_insecure_port(f"unix:{socket}")
        if self._grpc is not None:
            _add(server, self._grpc)
        await server.start()
        self._front.grpc_socket = socket
        return server


def _add(server: grpc.aio.Server, address: Address) -> None:
    try:
        server.add_insecure_port(str(address))
    except RuntimeError:
        raise CannotListen(
            f"cannot listen on {address}: another program may; check network.grpc_address"
        ) from None


def _warn(listen: Listen) -> None:
    for warning in listen.warnings:
        _log.warning("%s", warning)
