"""Limits a client's frames without payload, except acknowledgements and expected pings."""

from __future__ import annotations

from cogwork.front.http2_frames import ACK, DATA, HEADERS, PING, SETTINGS
from cogwork.front.rate_limit import RateLimit

_MAX_FREE_PINGS = 1000


class ControlFrames:
    """Counts pings, settings, priorities, empty data and unknown frames.

    Clients such as grpc-go answer received data with a ping, to measure their bandwidth. So for
    each data or header frame of the server, one ping is not counted. Acknowledgements are not
    counted either.
    """

    __slots__ = ("_free_pings", "_rate", "_unacknowledged")

    def __init__(self, limit: int, now: float) -> None:
        """Set the `limit`: the maximum number of counted frames per second."""
        self._rate = RateLimit(limit, now)
        self._free_pings = 0
        self._unacknowledged = {PING: 0, SETTINGS: 0}
        """How many of the server's frames the client has not acknowledged yet, by type."""

    def on_server_frame(self, kind: int, flags: int) -> None:
        if kind in (DATA, HEADERS):
            if self._free_pings < _MAX_FREE_PINGS:
                self._free_pings += 1
        elif kind in self._unacknowledged and not flags & ACK:
            self._unacknowledged[kind] += 1

    def on_client_frame(self, kind: int, flags: int, now: float) -> None:
        """Count a frame. Raise ProtocolViolation if there are too many."""
        if flags & ACK and self._unacknowledged.get(kind):
            self._unacknowledged[kind] -= 1
        elif kind == PING and not flags & ACK and self._free_pings:
            self._free_pings -= 1
        else:
            self._rate.count(now)
