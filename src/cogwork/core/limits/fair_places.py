"""Gives out a limited number of places fairly among clients of several identities and ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class Holder(NamedTuple):
    """The client that has a place, or asks for one."""

    identity: str
    rank: int
    """A client of a higher rank takes the place of one of a lower rank."""


def choose_displaced(holders: Mapping[K, Holder], newcomer: Holder) -> K | None:
    """Return the place that a newcomer takes over when all are taken; None if it gets none.

    It takes over the oldest place of a lower rank, or of an identity of its own rank that would
    still have no fewer places than its own. `holders` has the oldest place first.
    """
    counts = Counter(each.identity for each in holders.values())
    share = counts[newcomer.identity] + 1

    def may_displace(holder: Holder) -> bool:
        is_greedy = holder.rank == newcomer.rank and counts[holder.identity] > share
        return holder.rank < newcomer.rank or is_greedy

    return min(
        (key for key, holder in holders.items() if may_displace(holder)),
        key=lambda key: (holders[key].rank, -counts[holders[key].identity]),
        default=None,
    )


def choose_next(waiting: Mapping[K, Holder], served: Counter[str]) -> K | None:
    """Return which of the waiting is served next; None if none waits.

    It is the one of the highest rank, then of the identity that is served least, then the oldest.
    """
    return min(
        waiting,
        key=lambda key: (-waiting[key].rank, served[waiting[key].identity]),
        default=None,
    )
