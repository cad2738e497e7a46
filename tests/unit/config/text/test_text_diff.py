from __future__ import annotations

import pytest

from cogwork.config.text.text_diff import (
    MAX_LINES,
    diff_masked,
    diff_revealed,
    mask_text,
    summarize_lines,
)

BEFORE = """{
  "name": "cam",
  "password": "first-one",
  "url": "rtsp://admin:pass-one@cam/"
}"""


def redact(text: str) -> str:
    return text.replace("pass-one", "***").replace("pass-two", "***")


def test_revealed_diff_shows_secrets() -> None:
    after = BEFORE.replace("first-one", "second-one")
    assert diff_revealed(BEFORE, after).split("\n") == [
        "--- before",
        "+++ after",
        "@@ -1,5 +1,5 @@",
        " {",
        '   "name": "cam",',
        '-  "password": "first-one",',
        '+  "password": "second-one",',
        '   "url": "rtsp://admin:pass-one@cam/"',
        " }",
    ]


def test_masked_diff_marks_changed_secrets() -> None:
    after = BEFORE.replace("first-one", "a-longer-one").replace("pass-one", "pass-two")
    lines = diff_masked(BEFORE, after, redact).split("\n")
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        '-  "password": "***",',
        '-  "url": "rtsp://admin:***@cam/"',
        '+  "password": "***",  (secret changed)',
        '+  "url": "rtsp://admin:***@cam/"  (secret changed)',
    ]


def test_masked_diff_shows_other_changes() -> None:
    lines = diff_masked(BEFORE, BEFORE.replace("cam", "lamp"), redact).split("\n")
    assert '-  "name": "cam",' in lines
    assert '+  "name": "lamp",' in lines
    assert "changed" not in "".join(lines)


def test_long_texts_are_not_compared() -> None:
    assert "more than 10,000 lines" in diff_revealed("a", "\n" * MAX_LINES)


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ("a\nb", "a\nb\nc", "lines: 1 added"),
        ("a\nb", "a", "lines: 1 removed"),
        ("a\nb\nc", "a\nd\ne\nf", "lines: 3 added, 2 removed"),
        ("a\nb", "b\na", "lines reordered"),
        ("a", "a", "no change"),
    ],
)
def test_summary_counts_lines(before: str, after: str, summary: str) -> None:
    assert summarize_lines(before, after) == summary


def test_masked_text_shows_no_secret() -> None:
    masked = mask_text(BEFORE, redact)
    assert '"name": "cam"' in masked
    assert '"password": "***"' in masked
    assert "pass-one" not in masked
