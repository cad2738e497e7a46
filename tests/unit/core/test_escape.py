"""Escaping of untrusted text to one printable line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.escape import INDENT, escape, escape_json, escape_lines

UNSAFE = "\0\t\n\r\x1b\x7f\x85\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ud800"


@pytest.mark.parametrize("character", UNSAFE)
def test_unsafe_character_is_escaped(character: str) -> None:
    assert character not in escape(f"a{character}b")
    assert escape(f"a{character}b").isascii()


def test_safe_text_is_unchanged() -> None:
    text = 'plain, "quoted", C:\\n, gehäim 密 \N{PILE OF POO}'
    assert escape(text) is text
    assert escape("a\nb\tc\x1b[2J") == r"a\nb\tc\x1b[2J"


@given(st.text(st.characters(codec=None)))
def test_escaped_text_is_one_line(text: str) -> None:
    assert len(f"a{escape(text)}".splitlines()) == 1
    assert escape(escape(text)) == escape(text)


@given(st.text(st.characters(codec=None)))
def test_escape_lines_indents_every_line(text: str) -> None:
    lines = escape_lines(text).split("\n")
    assert all(line.startswith(INDENT) for line in lines)
    assert len("\n".join(lines).splitlines()) == len(lines)


@given(st.text(st.characters(codec=None)))
def test_escape_json_keeps_the_value(text: str) -> None:
    document = escape_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(document) == {text: [text]}
    assert not set(UNSAFE) & set(document)
