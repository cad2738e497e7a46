"""Searches for many literals at once. The time hardly depends on their number.

A regular expression finds the prefixes of literals. Only the literals with a matching prefix are
compared in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PREFIX_LENGTH = 3
"""Length of the prefixes in bytes. Literals must not be shorter."""
_SPACE = re.compile(rb"\s+")


class LiteralMatcher:
    """Replaces literals. Whitespace in a literal matches any run of whitespace."""

    def __init__(self, literals: Iterable[bytes], *, whole_words: bool = False) -> None:
        self._whole_words = whole_words
        self._by_prefix: dict[bytes, _PrefixGroup] = {}
        for literal in {_SPACE.sub(b" ", each) for each in literals}:
            self._by_prefix.setdefault(literal[:PREFIX_LENGTH], _PrefixGroup()).add(literal)
        self._prefix_pattern = re.compile(_alternation(self._by_prefix))

    def replace(self, data: bytes, replacement: bytes) -> bytes:
        """Replace all literals. If several match at the same place, replace the longest."""
        parts: list[bytes] = []
        start = done = 0
        while (found := self._prefix_pattern.search(data, start)) is not None:
            begin = found.start()
            end = self._match_end(data, begin, self._by_prefix[_SPACE.sub(b" ", found[0])])
            if end is None:
                start = begin + 1
                continue
            parts += data[done:begin], replacement
            start = done = end
        return b"".join((*parts, data[done:])) if parts else data

    def _match_end(self, data: bytes, begin: int, group: _PrefixGroup) -> int | None:
        if self._whole_words and _splits_word(data, begin):
            return None
        ends = (end for end in group.match_ends(data, begin) if self._is_valid_end(data, end))
        return max(ends, default=None)

    def _is_valid_end(self, data: bytes, end: int) -> bool:
        return not (self._whole_words and _splits_word(data, end))


class _PrefixGroup:
    """Literals with a common prefix."""

    def __init__(self) -> None:
        self._exact: dict[int, set[bytes]] = {}
        """Literals without whitespace, by length."""
        self._with_spaces: list[list[bytes]] = []
        """Literals with whitespace, split into words."""

    def add(self, literal: bytes) -> None:
        if b" " in literal:
            self._with_spaces.append(literal.split(b" "))
        else:
            self._exact.setdefault(len(literal), set()).add(literal)

    def match_ends(self, data: bytes, begin: int) -> Iterable[int]:
        for length, literals in self._exact.items():
            if data[begin : begin + length] in literals:
                yield begin + length
        for words in self._with_spaces:
            if (end := _match_words(words, data, begin)) is not None:
                yield end


def _match_words(words: Sequence[bytes], data: bytes, begin: int) -> int | None:
    end = begin
    for number, word in enumerate(words):
        if number:
            space = _SPACE.match(data, end)
            if space is None:
                return None
            end = space.end()
        if not data.startswith(word, end):
            return None
        end += len(word)
    return end


def _alternation(texts: Iterable[bytes]) -> bytes:
    """Return an alternation as a trie, which compares each byte only once."""
    rests: dict[bytes, list[bytes]] = {}
    for text in texts:
        rests.setdefault(text[:1], []).append(text[1:])
    branches = (
        _byte_pattern(first) + (_alternation(after) if any(after) else b"")
        for first, after in rests.items()
    )
    return b"(?:%s)" % b"|".join(branches)


def _byte_pattern(byte: bytes) -> bytes:
    return rb"\s+" if byte == b" " else re.escape(byte)


def _splits_word(data: bytes, at: int) -> bool:
    return 0 < at < len(data) and _is_word_byte(data[at - 1]) and _is_word_byte(data[at])


def _is_word_byte(byte: int) -> bool:
    return byte == ord("_") or bytes((byte,)).isalnum()
