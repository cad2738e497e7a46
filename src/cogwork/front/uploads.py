"""Bounds the memory of large requests that have not arrived completely.

A server opens the window of a large request for all of it, at once and before the caller has logged
in. So its window updates are withheld here until there is memory for the request. Meanwhile the
client waits, as it would for a slow network.
"""

from __future__ import annotations

from collections.abc import Callable

from cogwork.core.limits.byte_budget import ByteBudget, OverBudget
from cogwork.front.http2_frames import ProtocolViolation

SMALL_SIZE = 1 << 19
"""Bytes of a request that a client may send without a window update."""
_MAX_SMALL_SHARE = 4
"""Part of the budget that one connection may use for requests without a charge."""

_Waiting = tuple["ConnectionUploads", int]
"""A connection and a stream of it."""


class Uploads:
    """The large requests of all connections. Clients take turns."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._waiting: dict[str, dict[_Waiting, int]] = {}
        """By client, the sizes of the requests that wait, oldest first."""
        self._small = 0
        """Bytes of requests without a charge that have arrived."""

    def open(self, client: str, on_grant: Callable[[], None]) -> ConnectionUploads:
        """Return the uploads of a connection. `on_grant` is called when one may go on."""
        return ConnectionUploads(self, client, on_grant)

    def charge_of(self, size: int) -> int:
        """Return what a request is charged: one that is too large waits until there are no others,
        and then the server refuses it."""
        return min(size, self._budget.most)

    def hold_small(self, change: int, held: int) -> None:
        """Count bytes of requests without a charge; `held` are those of the same connection.

        Raise ProtocolViolation if it holds too many.
        """
        self._small += change
        is_crowded = self._small > self._budget.most and held > SMALL_SIZE
        if change > 0 and (is_crowded or held > self._budget.most // _MAX_SMALL_SHARE):
            raise ProtocolViolation(f"{held} bytes of requests that are not complete")

    def take(self, client: str, size: int) -> bool:
        """Take memory, if there is enough."""
        try:
            self._budget.acquire(client, size)
        except OverBudget:
            return False
        return True

    def give_back(self, client: str, size: int) -> None:
        self._budget.release(client, size)
        while self._grant_next():
            pass

    def wait(self, client: str, request: _Waiting, size: int) -> None:
        self._waiting.setdefault(client, {})[request] = size

    def stop_waiting(self, client: str, request: _Waiting) -> None:
        queue = self._waiting.get(client, {})
        queue.pop(request, None)
        if not queue:
            self._waiting.pop(client, None)

    def _grant_next(self) -> bool:
        for client, queue in self._waiting.items():
            request, size = next(iter(queue.items()))
            if self.take(client, size):
                self.stop_waiting(client, request)
                if client in self._waiting:  # it is served again after the others
                    self._waiting[client] = self._waiting.pop(client)
                connection, stream = request
                connection.grant(stream)
                return True
        return False


class ConnectionUploads:
    """The large requests of one connection, by their streams."""

    def __init__(self, uploads: Uploads, client: str, on_grant: Callable[[], None]) -> None:
        self._uploads = uploads
        self._client = client
        self._on_grant = on_grant
        self._sizes: dict[int, int] = {}
        """Of the requests that have begun and are not complete."""
        self._charged: set[int] = set()
        """Those of them for which there is memory."""
        self._small: dict[int, int] = {}
        """Bytes of the others that have arrived, and of small requests."""
        self._small_total = 0
        self._withheld: dict[int, int] = {}
        """Bytes of the windows of the others."""
        self._granted: dict[int, int] = {}
        """The same for those that may go on now."""

    @property
    def has_granted(self) -> bool:
        return bool(self._granted)

    def is_waiting(self, stream: int) -> bool:
        return stream in self._withheld or stream in self._granted

    def begin(self, stream: int, size: int) -> None:
        """Note a request of this size, of which a part has arrived."""
        if size > SMALL_SIZE:
            self._sizes[stream] = self._uploads.charge_of(size)

    def receive(self, stream: int, size: int) -> None:
        """Note a part of a request that is not complete.

        Raise ProtocolViolation if the connection holds too much.
        """
        if stream not in self._charged:
            self._small[stream] = self._small.get(stream, 0) + size
            self._small_total += size
            self._uploads.hold_small(size, self._small_total)

    def withhold(self, stream: int, increment: int) -> bool:
        """Return whether a window update for a stream is withheld."""
        size = self._sizes.get(stream)
        if size is None or stream in self._charged:
            return False
        if stream in self._withheld:
            self._withheld[stream] += increment
            return True
        if self._uploads.take(self._client, size):
            self._charge(stream)
            return False
        self._withheld[stream] = increment
        self._uploads.wait(self._client, (self, stream), size)
        return True

    def grant(self, stream: int) -> None:
        """There is memory for a request that waits."""
        self._charge(stream)
        self._granted[stream] = self._withheld.pop(stream)
        self._on_grant()

    def take_granted(self) -> dict[int, int]:
        """Return the window updates to send now: increments by stream."""
        granted, self._granted = self._granted, {}
        return granted

    def end(self, stream: int) -> None:
        """A request is complete, or will not be."""
        self._forget_small(stream)
        size = self._sizes.pop(stream, None)
        if size is None:
            return
        self._granted.pop(stream, None)
        if self._withheld.pop(stream, None) is not None:
            self._uploads.stop_waiting(self._client, (self, stream))
        if stream in self._charged:
            self._charged.discard(stream)
            self._uploads.give_back(self._client, size)

    def close(self) -> None:
        """The connection has ended."""
        for stream in (*self._sizes, *self._small):
            self.end(stream)

    def _charge(self, stream: int) -> None:
        self._charged.add(stream)
        self._forget_small(stream)

    def _forget_small(self, stream: int) -> None:
        size = self._small.pop(stream, 0)
        if size:
            self._small_total -= size
            self._uploads.hold_small(-size, self._small_total)
