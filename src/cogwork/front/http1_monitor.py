"""Monitors a relayed HTTP/1.1 connection, to detect whether it is in use."""

from __future__ import annotations

from collections.abc import Callable

_END_OF_HEAD = b"\r\n\r\n"


class Http1Monitor:
    """Detects requests without parsing them: a request begins when its head is complete, and ends
    with the first bytes of the response.

    While more bytes of the response follow, the connection counts as recently active. A connection
    that streams a log counts as idle while no new lines arrive.
    """

    waiting_since = None
    held_size = 0

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self.last_active = clock()
        """The time of the last complete request, or of the last bytes of a response."""
        self.request_count = 0
        """The number of answered requests."""
        self.is_busy = False
        self._last_bytes = b""

    def feed_client(self, data: memoryview) -> memoryview:
        if not self.is_busy:
            received = self._last_bytes + bytes(data)
            if _END_OF_HEAD in received:
                self.is_busy = True
                self.last_active = self._clock()
                self._last_bytes = b""
            else:
                self._last_bytes = received[-len(_END_OF_HEAD) + 1 :]
        return data

    def feed_server(self, data: memoryview) -> memoryview:
        if not data:
            return data
        self.request_count += self.is_busy
        self.is_busy = False
        self.last_active = self._clock()
        return data
