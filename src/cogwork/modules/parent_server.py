"""The gRPC server on which modules call back into their machine."""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import grpc.aio

from cogwork.core.os_error_text import os_reason
from cogwork.front.peer_name import parse_socket_name
from cogwork.front.relay import GrpcRelay, RelayedConnection
from cogwork.net.acceptor import Acceptor
from cogwork.net.listen_sockets import open_unix_listener
from cogwork.net.local_address import remove_socket, unix_address
from cogwork.net.peer import Peer
from cogwork.robot.middleware.access import module_peer
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.grpc import grpc_server
from cogwork.wire.transports.running_calls import RunningCalls
from cogwork.wire.transports.supervised_server import SupervisedServer

GRACE = 1.0
_MAX_CONNECTIONS = 128
"""Maximum open connections of one module; the SDK opens one or two."""

_log = logging.getLogger("rdk.modmanager")


class ParentServer:
    """A gRPC server with one socket per module, which identifies the module of each call.

    Only the server's user can access the directory of the sockets. Unless a module has its own
    user, it runs as the server's user. Access rules then protect against mistakes, but not against
    a malicious program.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sockets = (directory / f"parent{number}" for number in itertools.count(1))
        self._running = RunningCalls()
        self._relay = GrpcRelay(directory / "parent")
        self._relay.ask = lambda: self._relay.settle(self._running.count_cancelled())
        self._peers: dict[str, str] = {}
        """Peer names of modules, by the tokens in the names of their sockets."""
        self._server: SupervisedServer | None = None

    async def start(self, table: HandlerTable) -> None:
        self._server = SupervisedServer(partial(self._start_server, table))
        await self._server.start()

    async def aclose(self) -> None:
        if self._server is not None:
            await self._server.stop(GRACE)
        self._relay.close()

    @contextlib.contextmanager
    def open_socket(self, module: str, folder: Path) -> Iterator[str]:
        """Open a socket that only this module uses, and remove it at the end."""
        token = secrets.token_hex(3)
        address = unix_address(folder, f"parent-{module}", token)
        self._peers[token] = module_peer(module)
        listener = _Listener(address, module_peer(module), Peer(token), self._relay)
        try:
            yield address
        finally:
            listener.close()
            remove_socket(address)
            del self._peers[token]

    async def _start_server(self, table: HandlerTable) -> grpc.aio.Server:
        server = grpc_server(table, self._find_peer, running=self._running)
        # Use a new socket for every server: the previous server may not have removed its own socket
        # yet.
        private = next(self._sockets)
        server.add_insecure_port(f"unix:{private}")
        await server.start()
        self._relay.target = private
        return server

    def _find_peer(self, name: str) -> Peer:
        token = parse_socket_name(name).address
        return Peer(self._peers.get(token, token), is_local=True)


class _Listener:
    def __init__(self, address: str, peer: str, token: Peer, relay: GrpcRelay) -> None:
        self._peer = peer
        self._token = token
        self._relay = relay
        self._connections: set[RelayedConnection] = set()
        listener = open_unix_listener(address, _MAX_CONNECTIONS)
        self._acceptor = Acceptor(listener, self._relay_connection, self._report_pause)

    def close(self) -> None:
        self._acceptor.close()
        # Close open connections, too: once the socket is removed, calls on them can no longer be
        # assigned to a module.
        for connection in tuple(self._connections):
            connection.close()

    def _report_pause(self, error: OSError) -> None:
        _log.error("cannot accept connections from %s: %s; retrying", self._peer, os_reason(error))

    def _relay_connection(self, connection: socket.socket, _: object) -> None:
        if len(self._connections) >= _MAX_CONNECTIONS:
            _log.warning(
                "refused a connection from %s: the limit of %d open connections is reached",
                self._peer,
                _MAX_CONNECTIONS,
            )
            connection.close()
            return
        try:
            relayed = self._relay.start(
                connection, self._token, lambda: self._connections.discard(relayed)
            )
        except OSError as error:
            _log.warning("lost a connection from %s: %s", self._peer, os_reason(error))
            connection.close()
        else:
            self._connections.add(relayed)
