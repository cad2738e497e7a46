from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.subprocesses.traceback_grouper import MAX_LINES, TracebackGrouper, summarize

PYTHON = """\
Traceback (most recent call last):
  File "run.py", line 3, in <module>
    main()
    ~~~~^^
ValueError: no belt"""
CHAINED = f"""\
{PYTHON}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "run.py", line 5, in <module>
    raise KeyError("belt")
KeyError: 'belt'"""
SYNTAX = """\
  File "run.py", line 1
    def
       ^
SyntaxError: invalid syntax"""
GO = """\
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.(*belt).move(0xc000012345)
        /src/main.go:7 +0x1d
main.main()
        /src/main.go:12 +0x25
exit status 2"""


def group(text: str) -> list[str]:
    grouper = TracebackGrouper()
    found = [each for line in text.split("\n") for each in grouper.feed(line)]
    return [*found, *grouper.flush()]


@pytest.mark.parametrize(
    ("traceback", "summary"),
    [
        (PYTHON, "ValueError: no belt"),
        (CHAINED, "KeyError: 'belt'"),
        (SYNTAX, "SyntaxError: invalid syntax"),
        (GO, "panic: runtime error: index out of range [5] with length 3"),
    ],
)
def test_traceback_is_one_text_between_other_lines(traceback: str, summary: str) -> None:
    assert group(f"before\n{traceback}\nafter this") == ["before", traceback, "after this"]
    assert summarize(traceback.split("\n")) == summary


def test_two_tracebacks_in_a_row_are_two_texts() -> None:
    assert group(f"{PYTHON}\n{PYTHON}\n\n{PYTHON}") == [PYTHON, PYTHON, "", PYTHON]


def test_ordinary_lines_pass_at_once() -> None:
    grouper = TracebackGrouper()
    for line in ("started", "  indented", "", "Error: no belt", "panic"):
        assert list(grouper.feed(line)) == [line]
        assert not grouper.is_holding


def test_real_traceback_of_this_python_is_one_text() -> None:
    source = "try:\n  int('x')\nexcept ValueError as error:\n  raise KeyError(1) from error"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    (found,) = group(done.stderr.rstrip("\n"))
    assert summarize(found.split("\n")) == "KeyError: 1"


def test_long_traceback_is_passed_on_in_parts() -> None:
    lines = ["Traceback (most recent call last):", *(f"  frame {n}" for n in range(5 * MAX_LINES))]
    texts = group("\n".join(lines))
    assert "\n".join(texts).split("\n") == lines
    assert max(text.count("\n") for text in texts) < MAX_LINES


@given(st.lists(st.sampled_from([*GO.split("\n"), *CHAINED.split("\n"), "ordinary", "  x", ""])))
def test_no_line_is_lost_or_moved(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "\n".join(group(text)) == text
