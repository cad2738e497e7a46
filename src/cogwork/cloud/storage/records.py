"""The cloud's records: what an engine must offer to store them.

Queries are written in the SQL that SQLite and PostgreSQL share, with `?` for values. Times are
microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from cogwork.core.errors import CogworkError

T = TypeVar("T")
Value = str | int | bytes | None


class RecordsUnavailable(CogworkError):
    """The records cannot be read or written now."""

    status = "UNAVAILABLE"


class DuplicateRecord(CogworkError):
    """A record with this key exists."""

    status = "ALREADY_EXISTS"


class BrokenReference(CogworkError):
    """A record refers to one that does not exist, or is referred to by others."""

    status = "FAILED_PRECONDITION"


class Rows(NamedTuple):
    """The rows of a query as they are stored; `select.py` makes typed values of them."""

    columns: tuple[str, ...]
    values: Sequence[tuple[Value, ...]]


class Transaction(Protocol):
    """Reads and changes that other transactions see all at once, or never."""

    def read_rows(self, sql: str, *values: Value) -> Rows:
        """For `select.py` and what wraps a transaction; others use the functions there."""

    def execute(self, sql: str, *values: Value) -> int:
        """Make a change and return the number of changed rows.

        Raise DuplicateRecord or BrokenReference.
        """


class Records(Protocol):
    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on a state that does not change meanwhile, and return its result.

        The work runs in a thread and must not change anything.
        """

    async def write(
        self, work: Callable[[Transaction], T], then: Callable[[T], None] | None = None
    ) -> T:
        """Run the work and return its result when its changes are on disk.

        Transactions appear to run one after the other. If the work raises, nothing is changed.
        The work runs in a thread, and may run again if another transaction was in its way.
        `then` is called on the loop, in the context of the caller, with the result of work whose
        changes are on disk, also if the caller was cancelled or gave up meanwhile.
        """

    async def aclose(self) -> None: ...
