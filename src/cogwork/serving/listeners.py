"""The network side of the server: the gRPC server and the public port in front of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import grpc.aio

from cogwork.front.connections import DEFAULT_LIMITS, ConnectionLimits
from cogwork.front.peer_name import parse_socket_name
from cogwork.front.tls_socket import TlsSettings
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.address import Address
from cogwork.net.listen_sockets import CannotListen
from cogwork.net.peer import OnClient
from cogwork.serving.front import Front, ServerSockets, make_front
from cogwork.serving.listen_addresses import ListenAddresses
from cogwork.serving.public_port import PublicPort
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE
from cogwork.wire.transports.asgi import Application
from cogwork.wire.transports.grpc import grpc_server
from cogwork.wire.transports.grpc_options import Keepalive
from cogwork.wire.transports.http1 import Http1Server
from cogwork.wire.transports.running_calls import RunningCalls
from cogwork.wire.transports.supervised_server import SupervisedServer

GRACE = 1.0
"""Seconds that active calls have to finish when the server stops."""

_log = logging.getLogger("rdk.networking")


class Listeners:
    def __init__(
        self,
        table: HandlerTable,
        application: Callable[[], Application],
        directory: Path,
        on_client: OnClient = lambda *_: None,
        connections: ConnectionLimits = DEFAULT_LIMITS,
        max_request_size: int = MAX_REQUEST_SIZE,
        keepalive: Keepalive | None = None,
    ) -> None:
        self._table = table
        self._keepalive = keepalive
        self._max_request_size = max_request_size
        self._connections = connections
        self._on_client = on_client
        self._grpc_sockets = (directory / f"grpc{number}" for number in itertools.count(1))
        self._sockets = ServerSockets(directory / "grpc", directory / "http")
        self._front: Front | None = None
        self._public_port: PublicPort | None = None
        self._proxies = TrustedProxies()
        self._running = RunningCalls()
        self._http = Http1Server(application, self._proxies)
        self._server = SupervisedServer(self._start_grpc_server)
        self._public: Address | None = None
        self._grpc: Address | None = None
        self._desired: ListenAddresses | None = None
        self._change_lock = asyncio.Lock()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return self._public_port.addresses if self._public_port is not None else []

    async def start(self, listen: ListenAddresses) -> None:
        """Start listening. Raise CannotListen."""
        self._grpc = listen.grpc
        self._http.listen(self._sockets.http)
        self._trust_proxies(listen.proxies)
        self._front = make_front(
            listen.front, self._on_client, self._running.count_cancelled, self._connections
        )
        await self._server.start()
        self._public_port = PublicPort(self._front)
        await self._public_port.listen(*listen.public)
        self._public = listen.public
        self._desired = listen
        _log_warnings(listen)

    async def change(self, listen: ListenAddresses) -> None:
        """Listen on other addresses, and keep open connections.

        If an address cannot be bound, the server keeps listening on the current ones.
        """
        before, self._desired = self._desired, listen
        if before is not None and listen.grpc not in (before.grpc, self._grpc):
            _log.warning(
                "the change of network.grpc_address takes effect after a restart; until then, "
                "the address is %s",
                self._grpc or "not served",
            )
        if before is not None and listen.front != before.front:
            _log.warning("the change of network.front takes effect after a restart")
        self._trust_proxies(listen.proxies)
        async with self._change_lock:
            # Skip this change if a newer one has arrived while this call waited for the lock.
            if listen is self._desired and listen.public != self._public:
                await self._rebind(listen)

    async def _rebind(self, listen: ListenAddresses) -> None:
        assert self._public_port is not None  # created by `start`
        try:
            await self._public_port.listen(*listen.public)
        except CannotListen as error:
            _log.error("%s; still listening on %s", error, self._public)
            return
        self._public = listen.public
        _log.info("listening on %s", " and ".join(str(Address(*at)) for at in self.addresses))
        _log_warnings(listen)

    def use_tls(self, settings: TlsSettings | None) -> None:
        """Use these TLS settings for new connections; None for plaintext. Open connections stay
        open."""
        self._use_sockets(replace(self._sockets, tls=settings))

    async def stop_accepting(self) -> None:
        if self._public_port is not None:
            await self._public_port.stop_listening()

    async def aclose(self) -> None:
        stopping = asyncio.ensure_future(self._server.stop(GRACE))
        await asyncio.wait({stopping}, timeout=2 * GRACE)
        await self._http.aclose()
        if self._public_port is not None:
            # Close the relay: otherwise, gRPC could not close the connection of a client that does
            # not read.
            await self._public_port.aclose()
        await asyncio.wait({stopping}, timeout=GRACE)
        stopping.cancel()

    async def _start_grpc_server(self) -> grpc.aio.Server:
        server = grpc_server(
            self._table,
            parse_socket_name,
            self._proxies,
            self._running,
            self._max_request_size,
            self._keepalive,
        )
        # Use a new socket for every server: the previous server may not have removed its socket
        # yet.
        path = next(self._grpc_sockets)
        server.add_insecure_port(f"unix:{path}")
        if self._grpc is not None:
            _add_port(server, self._grpc)
        await server.start()
        self._use_sockets(replace(self._sockets, grpc=path))
        return server

    def _trust_proxies(self, networks: tuple[str, ...]) -> None:
        if networks != self._sockets.proxies:
            self._proxies.replace(networks)
            self._use_sockets(replace(self._sockets, proxies=networks))

    def _use_sockets(self, sockets: ServerSockets) -> None:
        self._sockets = sockets
        if self._front is not None:
            self._front.use_sockets(sockets)


def _add_port(server: grpc.aio.Server, address: Address) -> None:
    try:
        server.add_insecure_port(str(address))
    except RuntimeError:
        raise CannotListen(
            f"cannot listen on {address}: it may be in use; check network.grpc_address"
        ) from None


def _log_warnings(listen: ListenAddresses) -> None:
    for warning in listen.warnings:
        _log.warning("%s", warning)
