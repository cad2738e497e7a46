"""Replacing many literals in one search."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cogwork.logs.literal_matcher import LiteralMatcher

letters = st.binary(min_size=3, max_size=6).map(lambda data: bytes(b"ab-\xff"[b % 4] for b in data))


@given(st.lists(letters, min_size=1, max_size=20), st.lists(letters, max_size=20))
def test_replace_matches_a_regex_alternation(literals: list[bytes], parts: list[bytes]) -> None:
    data = b"".join([*parts, *literals[:2]])
    longest_first = sorted(set(literals), key=len, reverse=True)
    expected = re.sub(b"|".join(map(re.escape, longest_first)), b"*", data)
    assert LiteralMatcher(literals).replace(data, b"*") == expected


@given(st.lists(letters, min_size=1, max_size=20), st.lists(letters, max_size=20))
def test_whole_word_replace_matches_a_regex_alternation(
    literals: list[bytes], parts: list[bytes]
) -> None:
    data = b"-".join([*parts, *literals[:2]])
    longest_first = sorted(set(literals), key=len, reverse=True)
    edge = rb"(?!(?<=\w)\w)"
    source = edge + b"(?:%s)" % b"|".join(map(re.escape, longest_first)) + edge
    expected = re.sub(source, b"*", data)
    assert LiteralMatcher(literals, whole_words=True).replace(data, b"*") == expected


def test_whitespace_in_a_literal_matches_any_whitespace() -> None:
    literals = LiteralMatcher([b"a \t b", b"abc d"])
    assert literals.replace(b"a b, a\n\nb, abc\td, abcd", b"*") == b"*, *, *, abcd"
