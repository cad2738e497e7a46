from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.versions.version_order import has_order, is_older, order_of

ASCENDING = [
    "nightly",
    "0",
    "0.1.0",
    "0.9",
    "0.10.0.dev3",
    "0.10.0a1",
    "0.10.0a2",
    "0.10.0-beta.1",
    "0.10.0rc1.dev1",
    "0.10.0rc1",
    "0.10.0-rc.2",
    "0.10.0-rc.10",
    "0.10.0",
    "0.10.0.post1",
    "0.10.1",
    "1",
    "1.0.0.1",
    "2026.11",
]
EQUAL = [("1", "1.0.0"), ("1.0.0", "1.0.0+build.7"), ("1.0rc1", "1.0-rc.1"), ("1.0RC1", "1.0rc1")]


def test_versions_are_in_their_order() -> None:
    for one, other in itertools.combinations(ASCENDING, 2):
        assert is_older(one, other), (one, other)
        assert not is_older(other, one), (one, other)


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_notation_does_not_count(one: str, other: str) -> None:
    assert order_of(one) == order_of(other)


def test_text_that_is_not_a_version_has_no_order() -> None:
    assert not has_order("nightly")
    assert has_order("0")


@given(st.text("0123456789.abcdevrpost+-_", max_size=64), st.text(max_size=64))
def test_every_two_texts_can_be_compared(one: str, other: str) -> None:
    assert is_older(one, other) + is_older(other, one) + (order_of(one) == order_of(other)) == 1
