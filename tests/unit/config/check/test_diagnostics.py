from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.check.diagnostics import replace_unprintable, replace_unprintable_lines


def test_tabs_and_line_breaks_are_readable_and_other_characters_are_replaced() -> None:
    assert replace_unprintable("a\tb\r\nc\x1b[2J") == r"a b\r\nc" + "\ufffd[2J"


def test_lines_after_the_first_are_indented() -> None:
    assert replace_unprintable_lines("one\n\ttwo\x07\nthree") == "one\n     two\ufffd\n    three"
    assert replace_unprintable_lines("") == ""


@given(st.text())
def test_any_text_becomes_printable_lines(text: str) -> None:
    assert replace_unprintable(text).isprintable()
    first, *rest = replace_unprintable_lines(text).split("\n")
    assert first.isprintable()
    assert all(line.isprintable() and line.startswith("    ") for line in rest)
