"""A budget for the bytes that the server holds on behalf of its clients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from cogwork.core.errors import CogworkError

_MIB = 1 << 20
_OVERCOMMIT_FACTOR = 4
"""Multiple of the total that may be held if every client holds a single message."""


class OverBudget(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(slots=True)
class ByteBudget:
    """Counts the bytes held for each client, without I/O.

    A client that holds nothing may exceed the limits with its first message, up to
    `_OVERCOMMIT_FACTOR` times the total.
    """

    label: str
    """What is counted, for error messages: `requests in flight`."""
    total: int
    per_client: int
    held: dict[str, int] = field(default_factory=dict)
    total_held: int = 0

    def acquire(self, client: str, size: int) -> None:
        """Reserve bytes, which the caller must release. Raise OverBudget if a limit is exceeded."""
        held = self.held.get(client, 0)
        after = self.total_held + size
        crowded = held and (held + size > self.per_client or after > self.total)
        if crowded or after > _OVERCOMMIT_FACTOR * self.total:
            raise OverBudget(
                f"your {self.label} hold {held} bytes, of {self.total_held} for all clients; "
                "wait for some of them to finish"
            )
        self.held[client] = held + size
        self.total_held = after

    @contextlib.contextmanager
    def hold(self, client: str, size: int) -> Iterator[None]:
        self.acquire(client, size)
        try:
            yield
        finally:
            self.release(client, size)

    def release(self, client: str, size: int) -> None:
        self.total_held -= size
        left = self.held[client] - size
        if left:
            self.held[client] = left
        else:
            del self.held[client]


def request_budget() -> ByteBudget:
    """Return the budget of a transport for the requests that it has received."""
    return ByteBudget("requests in flight", total=256 * _MIB, per_client=64 * _MIB)
