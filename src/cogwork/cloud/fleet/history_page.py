"""Pages of a history with limited size, and the limits of the history itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from cogwork.cloud.storage.tables import FragmentRevisionRow, PartHistoryRow
from cogwork.core.errors import InvalidRequest

KEPT_REVISIONS: Final = 1000
KEPT_TIME: Final = 366 * 24 * 3600 * 1_000_000
"""Microseconds to keep a revision. Older ones are removed only if they are not among the newest
`KEPT_REVISIONS`."""
REMOVED_AT_ONCE: Final = 10
"""Maximum number of revisions to remove with one edit. This suffices, because an edit adds only
one."""

_MAX_BYTES: Final = 1 << 20
"""Maximum size of the texts in a page. A reply is larger than its texts, and clients limit the size
of replies."""


R = TypeVar("R", FragmentRevisionRow, PartHistoryRow)


class Page(NamedTuple, Generic[R]):
    rows: list[R]
    has_more: bool


def read_page(read_next: Callable[[int], R | None], newest: int, limit: int) -> Page[R]:
    """Return a page of revisions, newest first: at least one, if any exist.

    `read_next` returns the newest row up to the given revision number. Rows are read one at a time,
    because even a few rows may be too large for memory.
    """
    found: list[R] = []
    size = 0
    for row in _iterate(read_next, newest):
        size += len(row.config)
        if found and (size > _MAX_BYTES or len(found) == limit):
            return Page(found, has_more=True)
        found.append(row)
    return Page(found, has_more=False)


def read_page_token(token: str) -> int:
    """Return the revision in a page token. Raise InvalidRequest."""
    if token.isascii() and token.isdecimal() and len(token) < 16:
        return int(token)
    raise InvalidRequest("the page token is not valid; begin with the first page")


def _iterate(read_next: Callable[[int], R | None], newest: int) -> Iterator[R]:
    while (row := read_next(newest)) is not None:
        yield row
        newest = row.revision - 1
