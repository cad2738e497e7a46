"""Listens on the one public port, and distinguishes gRPC from HTTP/1.1 by the first bytes.

grpc core cannot share a port, so both kinds of connections are relayed to the private Unix sockets
of their servers.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence

from cogwork.core.os_error_text import os_reason
from cogwork.front.accepted_connection import AcceptedConnection
from cogwork.front.admission import ConnectionAdmission
from cogwork.front.connections import ConnectionLimits, Connections, ConnectionState
from cogwork.front.dispatcher import Dispatcher
from cogwork.front.listener_limits import ListenerLimits
from cogwork.front.relay import Relay
from cogwork.front.tls_socket import TlsSettings
from cogwork.net.acceptor import Acceptor
from cogwork.net.peer import OnClient

_ACCEPT_BATCH = 8
"""Connections accepted per iteration of the event loop. Further connections wait in the kernel's
backlog."""

_log = logging.getLogger("rdk.networking")


class PublicListener:
    def __init__(
        self,
        grpc: Relay,
        http: Relay,
        limits: ListenerLimits | None = None,
        on_client: OnClient = lambda *_: None,
    ) -> None:
        """`grpc` relays HTTP/2 connections, and `http` relays all others.

        `on_client` is called when a gRPC client connects or disconnects.
        """
        limits = limits or ListenerLimits()
        self._grpc = grpc
        self._http = http
        self._accept_pause = limits.accept_retry_delay
        self._acceptors: list[Acceptor] = []
        self._connections = Connections(time.monotonic, limits.connections)
        self._dispatcher = Dispatcher(grpc, http, self._connections, limits, on_client)
        self._admission = ConnectionAdmission(self._connections, self._dispatcher.start)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def serve(self, listeners: list[socket.socket]) -> None:
        """Take ownership of these sockets, and accept from them instead of the current sockets.

        Open connections stay open.
        """
        self.stop_listening()
        self._acceptors = [
            Acceptor(
                listener,
                self._add,
                self._report_pause,
                batch=_ACCEPT_BATCH,
                pause=self._accept_pause,
            )
            for listener in listeners
        ]

    def limit_connections(self, limits: ConnectionLimits) -> None:
        """Apply these limits to new connections."""
        self._connections.limits = limits

    def use_tls(self, settings: TlsSettings | None) -> None:
        """Use these settings for new connections; None means plaintext. Open connections stay
        open."""
        self._dispatcher.use_tls(settings)

    def trust_proxies(self, networks: Sequence[str]) -> None:
        """Accept headers of the PROXY protocol from these networks."""
        self._dispatcher.trust_proxies(networks)

    async def aclose(self) -> None:
        self.stop_listening()
        self._admission.close()
        for connection in tuple(self._connections):
            if connection.state is ConnectionState.UNDETECTED:
                connection.close()
        await self._dispatcher.aclose()
        self._grpc.close()
        self._http.close()

    def stop_listening(self) -> None:
        """Accept no new connections; open connections stay open."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors = []

    def _add(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        self._admission.add(AcceptedConnection(accepted, address, self._connections.remove))

    def _report_pause(self, error: OSError) -> None:
        _log.error(
            "cannot accept connections: %s; retrying in %gs", os_reason(error), self._accept_pause
        )
