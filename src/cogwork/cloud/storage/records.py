"""The interface of an engine for the cloud's records.

Queries use the SQL that SQLite and PostgreSQL share, with `?` for values. Times are microseconds
since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from cogwork.core.errors import CogworkError

T = TypeVar("T")
Value = str | int | bytes | None


class RecordsUnavailable(CogworkError):
    """The records cannot be read or written at the moment."""

    status = "UNAVAILABLE"


class DuplicateRecord(CogworkError):
    """A record with this key already exists."""

    status = "ALREADY_EXISTS"


class BrokenReference(CogworkError):
    """A record refers to a missing record, or other records refer to it."""

    status = "FAILED_PRECONDITION"


class Rows(NamedTuple):
    """The rows of a query as stored. `select.py` converts them to typed values."""

    columns: tuple[str, ...]
    values: Sequence[tuple[Value, ...]]


class Transaction(Protocol):
    """Reads and changes in one atomic, isolated unit."""

    def read_rows(self, sql: str, *values: Value) -> Rows:
        """Return the rows of a query. Call the functions of `select.py` instead."""

    def execute(self, sql: str, *values: Value) -> int:
        """Execute a change, and return the number of changed rows.

        Raise DuplicateRecord or BrokenReference.
        """


class Records(Protocol):
    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run read-only work on a consistent snapshot, and return its result.

        The work runs in a thread.
        """

    async def write(
        self, work: Callable[[Transaction], T], then: Callable[[T], None] | None = None
    ) -> T:
        """Run the work, and return its result when its changes are on disk.

        Transactions appear to run one after the other. If the work raises, nothing is changed. The
        work runs in a thread, and may run again after a conflict with another transaction. After
        the changes are on disk, `then` is called on the loop with the result, in the context of the
        caller, even if the caller was canceled meanwhile.
        """

    async def aclose(self) -> None: ...
