"""The limits of the public port."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogwork.front.connections import ConnectionLimits
from cogwork.net.acceptor import ACCEPT_PAUSE


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    peek_timeout: float = 5.0
    """Timeout in seconds for a connection to send enough bytes to detect its protocol."""
    head_timeout: float = 10.0
    """Timeout in seconds for an HTTP/1.1 client to send the head of its first request. The
    connection is relayed only after the head, so thousands of slow clients do not reach the
    server."""
    accept_retry_delay: float = ACCEPT_PAUSE
    """Seconds to pause after the process has run out of file descriptors."""
    unread_timeout: float = 80.0
    """Maximum seconds for which a client may leave received data unread."""
