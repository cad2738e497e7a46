"""The machine's handler table, reachable: the gRPC listener and the public port before it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from cogwork.server.address import Address, Listen
from cogwork.wire.front import CannotListen, Front
from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.http1 import Application, Http1

GRACE = 1.0
"""Seconds that calls get to end when the server stops."""

_log = logging.getLogger("rdk.networking")


class Listeners:
    def __init__(
        self, table: HandlerTable, application: Callable[[], Application], directory: Path
    ) -> None:
        self._socket = directory / "grpc"
        self._front = Front(self._socket, Http1(application))
        self._server = grpc_server(table, self._front.peer)
        self._public: Address | None = None
        self._grpc: Address | None = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return self._front.addresses

    async def start(self, listen: Listen) -> None:
        """Raises CannotListen."""
        self._server.add_insecure_port(f"unix:{self._socket}")
        if listen.grpc is not None:
            self._listen_for_grpc(listen.grpc)
        await self._server.start()
        await self._front.listen(*listen.public)
        self._public = listen.public
        _warn(listen)

    async def change(self, listen: Listen) -> None:
        """Open connections stay. An address that cannot be had leaves everything as it is."""
        if listen.grpc != self._grpc:
            _log.warning("network.grpc_address takes effect when the server is started again")
        if listen.public == self._public:
            return
        try:
            await self._front.listen(*listen.public)
        except CannotListen as error:
            _log.error("%s; still listening on %s", error, self._public)
            return
        self._public = listen.public
        _log.info("listening on %s", listen.public)
        _warn(listen)

    def refuse_newcomers(self) -> None:
        self._front.stop_listening()

    async def aclose(self) -> None:
        await self._server.stop(GRACE)
        await self._front.aclose()

    def _listen_for_grpc(self, address: Address) -> None:
        try:
            self._server.add_insecure_port(str(address))
        except RuntimeError:
            raise CannotListen(
                f"cannot listen on {address}: another program may; check network.grpc_address"
            ) from None
        self._grpc = address


def _warn(listen: Listen) -> None:
    for warning in listen.warnings:
        _log.warning("%s", warning)
