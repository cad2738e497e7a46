"""Pages of a history, bounded in entries and bytes, and what a history keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from cogwork.cloud.storage.tables import FragmentRevisionRow, PartHistoryRow
from cogwork.core.errors import InvalidRequest

KEPT_REVISIONS: Final = 1000
KEPT_TIME: Final = 366 * 24 * 3600 * 1_000_000
"""Microseconds. A revision is removed only if it is older than both."""
REMOVED_AT_ONCE: Final = 10
"""Revisions. An edit adds one, so this keeps up without making an edit slow."""

_MAX_BYTES: Final = 1 << 20
"""Of the texts of a page. A reply has each of them several times, and clients limit replies."""


R = TypeVar("R", FragmentRevisionRow, PartHistoryRow)


class Page(NamedTuple, Generic[R]):
    rows: list[R]
    has_more: bool


def read_page(read_next: Callable[[int], R | None], newest: int, limit: int) -> Page[R]:
    """Return a page of revisions, newest first, with at least one of those that there are.

    `read_next` returns the newest row whose revision is at most the given one: each alone, because
    a few of them can be larger than memory should hold.
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
    """Return the revision before which a page begins. Raise InvalidRequest."""
    if token.isascii() and token.isdecimal() and len(token) < 16:
        return int(token)
    raise InvalidRequest("the page token is not one of this cloud; begin with the first page")


def _iterate(read_next: Callable[[int], R | None], newest: int) -> Iterator[R]:
    while (row := read_next(newest)) is not None:
        yield row
        newest = row.revision - 1
