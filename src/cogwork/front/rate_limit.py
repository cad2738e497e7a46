"""A limit on the frames per second of a client."""

from __future__ import annotations

from cogwork.front.http2_frames import ProtocolViolation


class RateLimit:
    """A counter that is reset every second. Counting a frame costs one addition."""

    __slots__ = ("_count", "_limit", "_since")

    def __init__(self, limit: int, now: float) -> None:
        self._limit = limit
        self._count = 0
        self._since = now

    def count(self, now: float) -> None:
        """Count one frame. Raise ProtocolViolation if there are too many."""
        self._count += 1
        if self._count > self._limit:
            if now - self._since < 1.0:
                raise ProtocolViolation(
                    f"the client sent more than {self._limit} frames without data in a second"
                )
            self._count, self._since = 0, now
