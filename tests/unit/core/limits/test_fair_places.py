from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.limits.fair_places import Holder, choose_displaced, choose_next

LOW, HIGH = 1, 2


def hold(*identities: str, rank: int = LOW) -> list[Holder]:
    return [Holder(each, rank) for each in identities]


def displaced(holders: list[Holder], newcomer: Holder) -> int | None:
    return choose_displaced(dict(enumerate(holders)), newcomer)


@pytest.mark.parametrize(
    ("holders", "newcomer", "expected"),
    [
        ([], Holder("new", LOW), None),
        (hold("a", "a", "b"), Holder("new", HIGH), 0),
        (hold("b", "a", "a"), Holder("new", HIGH), 1),
        (hold("a", "a", "a", rank=HIGH), Holder("new", LOW), None),
        (hold("a", "b", "c"), Holder("new", LOW), None),
        (hold("c", "a", "b", "a"), Holder("new", LOW), 1),
        (hold("a", "a", "new"), Holder("new", LOW), None),
        (hold("a", "a", "a", "new"), Holder("new", LOW), 0),
        ([*hold("a", "a", rank=HIGH), *hold("b")], Holder("new", HIGH), 2),
    ],
)
def test_place_that_is_taken_over(
    holders: list[Holder], newcomer: Holder, expected: int | None
) -> None:
    assert displaced(holders, newcomer) == expected


@given(st.lists(st.sampled_from("abc"), max_size=200))
def test_no_identity_keeps_another_out(arrivals: list[str]) -> None:
    """Each identity that asked often enough ends with a fair share of six places."""
    places: dict[int, Holder] = {}
    for number, identity in enumerate(arrivals):
        newcomer = Holder(identity, LOW)
        if len(places) == 6:
            victim = choose_displaced(places, newcomer)
            if victim is None:
                continue
            del places[victim]
        places[number] = newcomer
    asked, held = Counter(arrivals), Counter(each.identity for each in places.values())
    for identity, count in asked.items():
        assert held[identity] >= min(count, 6 // 3)


def test_next_is_the_highest_rank_then_the_identity_that_is_served_least() -> None:
    waiting = dict(enumerate([*hold("a", "b", "b"), *hold("c", "d", rank=HIGH)]))
    assert choose_next(waiting, Counter()) == 3
    assert choose_next(waiting, Counter(c=1)) == 4
    del waiting[3], waiting[4]
    assert choose_next(waiting, Counter(a=2, b=1)) == 1
    assert choose_next(waiting, Counter(a=1, b=1)) == 0
    assert choose_next({}, Counter()) is None
