"""`cogwork logs` on a terminal."""

from __future__ import annotations

import json

import pytest

from cogwork.cli.machine.logs import format_entry
from cogwork.cli.terminal import print_error, print_json

FORGED = "x\n2026-01-01T00:00:00.000Z  ERROR  forged\x1b]0;title\x07\u202e\u2028"


def test_entries_cannot_forge_lines_or_control_the_terminal() -> None:
    plain = {"time": "2026-11-15T00:00:00.000Z", "level": "info", "logger": "rdk", "message": "m"}
    for part in (*plain, "trace"):
        lines = format_entry({**plain, part: FORGED}).split("\n")
        assert not any(line.startswith("2026-01-01") for line in lines)
        assert not set("\x1b\x07\u202e\u2028") & set("".join(lines))
        assert len(lines) == (3 if part == "trace" else 1)


def test_entry_shows_its_place_and_its_fields() -> None:
    entry = {"time": "T", "level": "info", "logger": "rdk", "message": "m"}
    more = {"place": "lamp/main.go:42", "fields": {"lux": 3.5, "on": True}}
    assert format_entry({**entry, **more}) == (
        'T  INFO      rdk  lamp/main.go:42  m  {"lux": 3.5, "on": true}'
    )
    assert format_entry(entry) == "T  INFO      rdk  m"


def test_quoted_text_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_error(f"first\n{FORGED}")
    print_json({"a": FORGED, "b": "\x9b"})
    out, err = capsys.readouterr()
    assert not set("\x1b\x07\u202e\u2028\x9b") & set(out + err)
    assert err.startswith("first\nx\n2026-01-01")
    assert json.loads(out) == {"a": FORGED, "b": "\x9b"}
