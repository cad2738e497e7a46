"""Limits the memory of large requests that have not arrived completely.

A server opens the flow-control window for a whole large request at once, even before the caller has
logged in. So the server's window updates are withheld here until memory is reserved for the
request. The client waits, as it would on a slow network.
"""

from __future__ import annotations

from collections.abc import Callable

from cogwork.core.limits.byte_budget import ByteBudget, OverBudget
from cogwork.front.http2_frames import ProtocolViolation

SMALL_SIZE = 1 << 19
"""Maximum bytes of a request that a client may send without a window update."""
_MAX_SMALL_SHARE = 4
"""The budget divided by this number limits the received bytes of one connection for which no memory
is reserved."""

_Waiting = tuple["ConnectionUploads", int]
"""A connection, and one of its streams."""


class Uploads:
    """The large requests of all connections. Waiting clients are served in turn."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._waiting: dict[str, dict[_Waiting, int]] = {}
        """The waiting requests and their sizes, oldest first, by client."""
        self._small = 0
        """Received bytes of incomplete requests for which no memory is reserved."""

    def open(self, client: str, on_grant: Callable[[], None]) -> ConnectionUploads:
        """Return the uploads of a connection. `on_grant` is called when a waiting request may
        continue."""
        return ConnectionUploads(self, client, on_grant)

    def charge_of(self, size: int) -> int:
        """Return the number of bytes to reserve for a request.

        For a request larger than the budget, this is the whole budget. So the request waits until
        it is the only one, and then the server refuses it.
        """
        return min(size, self._budget.most)

    def hold_small(self, change: int, held: int) -> None:
        """Count received bytes for which no memory is reserved. `held` is the number of such bytes
        of the connection.

        Raise ProtocolViolation if the connection holds too many.
        """
        self._small += change
        is_crowded = self._small > self._budget.most and held > SMALL_SIZE
        if change > 0 and (is_crowded or held > self._budget.most // _MAX_SMALL_SHARE):
            raise ProtocolViolation(
                f"the incomplete requests of the connection take up too much memory: {held} bytes"
            )

    def take(self, client: str, size: int) -> bool:
        """Reserve memory. Return whether enough was available."""
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
                if client in self._waiting:  # move the client to the end of the line
                    self._waiting[client] = self._waiting.pop(client)
                connection, stream = request
                connection.grant(stream)
                return True
        return False


class ConnectionUploads:
    """The large requests of one connection, by stream."""

    def __init__(self, uploads: Uploads, client: str, on_grant: Callable[[], None]) -> None:
        self._uploads = uploads
        self._client = client
        self._on_grant = on_grant
        self._sizes: dict[int, int] = {}
        """The bytes to reserve for each incomplete large request, by stream."""
        self._charged: set[int] = set()
        """The streams for whose requests memory is reserved."""
        self._small: dict[int, int] = {}
        """The received bytes for which no memory is reserved, by stream."""
        self._small_total = 0
        self._withheld: dict[int, int] = {}
        """The sum of the withheld window updates, by stream."""
        self._granted: dict[int, int] = {}
        """The window updates that may be sent now, by stream."""

    @property
    def has_granted(self) -> bool:
        return bool(self._granted)

    def is_waiting(self, stream: int) -> bool:
        return stream in self._withheld or stream in self._granted

    def begin(self, stream: int, size: int) -> None:
        """Register an incomplete request of this size."""
        if size > SMALL_SIZE:
            self._sizes[stream] = self._uploads.charge_of(size)

    def receive(self, stream: int, size: int) -> None:
        """Count received bytes of an incomplete request.

        Raise ProtocolViolation if the connection holds too many bytes.
        """
        if stream not in self._charged:
            self._small[stream] = self._small.get(stream, 0) + size
            self._small_total += size
            self._uploads.hold_small(size, self._small_total)

    def withhold(self, stream: int, increment: int) -> bool:
        """Return whether a window update for a stream must be withheld."""
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
        """Let a waiting request continue, because memory is available."""
        self._charge(stream)
        self._granted[stream] = self._withheld.pop(stream)
        self._on_grant()

    def take_granted(self) -> dict[int, int]:
        """Return the window updates to send now: increments by stream."""
        granted, self._granted = self._granted, {}
        return granted

    def end(self, stream: int) -> None:
        """Release the memory of a request that is complete or was cancelled."""
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
        """Release the memory of all requests, because the connection was closed."""
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
