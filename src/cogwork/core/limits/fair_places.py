"""Assigns a limited number of places fairly to clients of several identities and ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class Holder(NamedTuple):
    """The client that has or requests a place."""

    identity: str
    rank: int
    """The priority: a client of a higher rank displaces a client of a lower rank."""


def choose_displaced(holders: Mapping[K, Holder], newcomer: Holder) -> K | None:
    """Return the place that a newcomer takes over when all places are taken; None if it gets none.

    Candidates are places of a lower rank, and places of the same rank whose identity has more
    places than the newcomer's identity would have. The lowest rank comes first, then the identity
    with the most places, then the oldest place. `holders` has the oldest place first.
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
    """Return the waiting client to serve next; None if no client waits.

    The order is: highest rank, then the identity with the fewest places, then the oldest.
    """
    return min(
        waiting,
        key=lambda key: (-waiting[key].rank, served[waiting[key].identity]),
        default=None,
    )
