"""Limits the number of recent requests that are not answered yet.

Without a limit, thousands of pending requests would delay the replies to every client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_MAX_AGE = 0.25
"""Maximum seconds for which an unanswered request occupies a place."""
_NOTICE = 0.01
"""Seconds that the server gets to notice a cancellation before it is queried about the request."""
_MAX_PLACES = 64
"""Maximum places of all connections together."""
_MIN_SHARE = 2
"""Minimum places of each connection."""
_SHARE_TTL = 0.05
"""Seconds for which a computed share is reused."""


class Burst:
    """The places of one connection: each recent, unanswered request occupies one.

    A cancelled request keeps its place while the server works on it. Otherwise, a client that opens
    and cancels requests in a loop would leave the server no time for other clients.
    """

    def __init__(
        self, limit: Callable[[], int], on_cancel: Callable[[], None] = lambda: None
    ) -> None:
        """`limit` returns the maximum places. `on_cancel` is called when a request with a place is
        cancelled."""
        self._limit = limit
        self._on_cancel = on_cancel
        self._began: dict[int, float] = {}
        """The streams that occupy a place, oldest first, with their start times."""
        self._cancelled: dict[int, float] = {}
        """The streams with a place that the client has cancelled, with the times of the
        cancellation."""
        self._asked: list[int] = []
        """The cancelled streams that the current query is about, oldest first."""

    @property
    def has_cancelled(self) -> bool:
        return bool(self._cancelled)

    def count(self, now: float) -> int:
        """Return the number of occupied places."""
        oldest = now - _MAX_AGE
        while self._began and (first := next(iter(self._began.items())))[1] <= oldest:
            self.end(first[0])
        return len(self._began)

    def is_full(self, now: float) -> bool:
        return self.count(now) >= self._limit()

    def begin(self, stream: int, now: float) -> None:
        self._began[stream] = now

    def end(self, stream: int) -> None:
        """Free the place of a request that was answered."""
        self._began.pop(stream, None)
        self._cancelled.pop(stream, None)

    def cancel(self, stream: int, now: float) -> None:
        if stream in self._began and stream not in self._cancelled:
            self._cancelled[stream] = now
            self._on_cancel()

    def ask(self, now: float) -> None:
        """Select the cancelled requests for the next query to the server."""
        self.count(now)  # frees the places of old requests
        noticed = now - _NOTICE
        self._asked = [each for each in self._began if self._cancelled.get(each, now) <= noticed]

    def settle(self, working: int) -> None:
        """Free the places of cancelled requests that the server has finished.

        `working` is the number of queried requests that the server still works on. The server
        reports only their number, so the latest requests keep their places.
        """
        asked = [stream for stream in self._asked if stream in self._cancelled]
        for stream in asked[: max(0, len(asked) - working)]:
            self.end(stream)
        self._asked = []


class Bursts:
    """The bursts of all connections, which share the places equally."""

    def __init__(self, clock: Callable[[], float], on_cancel: Callable[[], None]) -> None:
        """`on_cancel` is called when a request with a place is cancelled."""
        self._clock = clock
        self._on_cancel = on_cancel
        self._bursts: dict[int, Burst] = {}
        """The bursts by the number of the connection."""
        self._share = _MAX_PLACES
        self._share_computed_at = clock()

    @property
    def has_cancelled(self) -> bool:
        return any(each.has_cancelled for each in self._bursts.values())

    def open(self, connection: int) -> Burst:
        burst = self._bursts[connection] = Burst(self._fair_share, self._on_cancel)
        return burst

    def close(self, connection: int) -> None:
        self._bursts.pop(connection, None)

    def ask(self) -> None:
        """Select the cancelled requests of each connection for the next query to the server."""
        now = self._clock()
        for each in self._bursts.values():
            each.ask(now)

    def settle(self, working: Mapping[int, int]) -> None:
        """Apply the server's answer: for each connection, how many cancelled requests it still
        works on."""
        for connection, each in self._bursts.items():
            each.settle(working.get(connection, 0))

    def _fair_share(self) -> int:
        now = self._clock()
        if now - self._share_computed_at >= _SHARE_TTL:
            self._share_computed_at = now
            busy = sum(each.count(now) > 0 for each in self._bursts.values())
            self._share = max(_MIN_SHARE, _MAX_PLACES // max(1, busy))
        return self._share
