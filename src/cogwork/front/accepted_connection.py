"""A connection of the public port from accept to close, before and after it is relayed."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

from cogwork.front.connections import ConnectionState
from cogwork.front.relay import RelayedConnection
from cogwork.front.tls_socket import TlsSocket
from cogwork.net.peer import Peer


class AcceptedConnection:
    def __init__(
        self,
        accepted: socket.socket,
        address: tuple[str, int],
        on_close: Callable[[AcceptedConnection], None],
    ) -> None:
        self.socket: socket.socket | TlsSocket = accepted
        self.address = address
        self.host = address[0]
        self.served: RelayedConnection | None = None
        """The relayed connection; None until the protocol is known."""
        self.dispatch_task: asyncio.Task[None] | None = None
        self._is_forwarded = False
        """Whether the address belongs to a client behind a proxy."""
        self._is_encrypted_by_proxy = False
        """Whether the whole path is confidential: the client uses TLS to reach the proxy, and the
        connection of the proxy cannot be eavesdropped on."""
        self._accepted_at = time.monotonic()
        self._on_close = on_close

    @property
    def state(self) -> ConnectionState:
        return self.served.state if self.served is not None else ConnectionState.UNDETECTED

    @property
    def last_active(self) -> float:
        return self.served.last_active if self.served is not None else self._accepted_at

    def close(self) -> None:
        if self.served is not None:
            self.served.close()
        else:
            if self.dispatch_task is not None:
                self.dispatch_task.cancel()
            if self.socket.fileno() >= 0:
                # Remove the callbacks here and not in the cancelled task: another connection may
                # reuse the descriptor before that task runs.
                asyncio.get_running_loop().remove_reader(self.socket.fileno())
                asyncio.get_running_loop().remove_writer(self.socket.fileno())
            self.socket.close()
        self.notify_closed()

    def set_client(self, address: tuple[str, int], *, is_encrypted: bool) -> None:
        """Set the address of the client behind the proxy."""
        self.address = address
        self.host = address[0]
        self._is_forwarded = True
        self._is_encrypted_by_proxy = is_encrypted

    def make_peer(self, *, is_encrypted: bool, certificate: str) -> Peer:
        peer = Peer.from_addresses(
            self.address,
            self.socket.getsockname(),
            is_encrypted=is_encrypted or self._is_encrypted_by_proxy,
            certificate=certificate,
        )
        # A client behind a proxy is not on this computer, even if the proxy is.
        return peer._replace(is_local=False) if self._is_forwarded else peer

    def notify_closed(self) -> None:
        """Report that the connection is closed."""
        self._on_close(self)
