"""The limits of the public port."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogwork.front.connections import ConnectionLimits
from cogwork.net.acceptor import ACCEPT_PAUSE


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    peek_timeout: float = 5.0
    """Maximum seconds until a connection has sent enough to detect its protocol."""
    head_timeout: float = 10.0
    """Maximum seconds until an HTTP/1.1 client has sent the head of its first request. The server
    sees the connection only then, so thousands of slow clients do not reach it."""
    accept_retry_delay: float = ACCEPT_PAUSE
    """Seconds without accepting after the process ran out of file descriptors."""
    unread_timeout: float = 80.0
    """Maximum seconds for which a client may leave received data unread."""
