"""A budget for the bytes that the server holds on behalf of its clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogwork.core.errors import CogworkError
from cogwork.core.limits.held_amounts import HeldAmounts

_GIB = 1 << 30
_MAX_MEMORY = 3 * _GIB
_COPIES = 3
"""Number of copies of a request in memory: the received bytes, the parsed message, and the copy
that the resource makes."""
_UNCOUNTED_SIZE = 4096
"""Size in bytes up to which a message is not counted."""
_OVERCOMMIT_FACTOR = 4
"""If each client holds a single message, all clients together may hold this many times the
total."""


class OverBudget(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(slots=True)
class ByteBudget:
    """Counts the bytes held for each client, without I/O.

    The first message of a client that holds nothing may exceed the limits, up to
    `_OVERCOMMIT_FACTOR` times the total.
    """

    label: str
    """A name for the counted bytes in error messages: `requests in flight`."""
    total: int
    per_client: int
    held: HeldAmounts = field(default_factory=HeldAmounts)

    @property
    def most(self) -> int:
        """The maximum number of bytes held at any time."""
        return _OVERCOMMIT_FACTOR * self.total

    def acquire(self, client: str, size: int) -> None:
        """Reserve bytes, which the caller must release. Raise OverBudget if a limit is exceeded."""
        held = self.held.of(client)
        after = self.held.total + size
        crowded = held and (held + size > self.per_client or after > self.total)
        if crowded or after > self.most:
            raise OverBudget(
                f"a memory limit is reached: your {self.label} hold {held} bytes, and all clients "
                f"together hold {self.held.total} bytes; wait until some of them have finished"
            )
        self.held.hold(client, size)

    def release(self, client: str, size: int) -> None:
        self.held.release(client, size)


class Hold:
    """The bytes of a budget that one call holds. They are released at the end of a `with` block."""

    __slots__ = ("_budget", "_client", "size")

    def __init__(self, budget: ByteBudget, client: str) -> None:
        self._budget = budget
        self._client = client
        self.size = 0

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.reduce(0)

    def acquire(self, size: int) -> None:
        """Reserve bytes. Raise OverBudget if a limit is exceeded."""
        self._budget.acquire(self._client, size)
        self.size += size

    def acquire_message(self, size: int) -> None:
        """Reserve bytes for a message or metadata of this size, unless the size is small.

        Raise OverBudget if a limit is exceeded.
        """
        if size > _UNCOUNTED_SIZE:
            self.acquire_part(size)

    def acquire_part(self, size: int) -> None:
        """Reserve bytes for a part of a message. Raise OverBudget if a limit is exceeded."""
        self.acquire(_COPIES * size)

    def reduce(self, size: int) -> None:
        """Release all bytes beyond this size."""
        if self.size > size:
            self._budget.release(self._client, self.size - size)
            self.size = size


def request_budget(memory: int) -> ByteBudget:
    """Return the budget for the requests that a server has received, on all transports.

    `memory` is the memory of the computer. Requests may take a quarter of it.
    """
    return _make_budget("requests in flight", min(memory // 4, _MAX_MEMORY) * 3 // 4)


def upload_budget(memory: int) -> ByteBudget:
    """Return the budget for requests that have not arrived completely."""
    return _make_budget("uploads", min(memory // 4, _MAX_MEMORY) // 4)


def _make_budget(label: str, most: int) -> ByteBudget:
    total = most // _OVERCOMMIT_FACTOR
    return ByteBudget(label, total, per_client=total // 2)
