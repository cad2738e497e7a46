from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripts import sample_texts
from scripts.sample_texts import Text, collect_errors, collect_log_lines, collect_prose

FILE = Path("example.py")
SOURCE = '''\
"""Open doors."""
# First line,
# second line.
LIMIT = 3  # noqa: F841
"""Doors
   at most."""


def open_door(name: str) -> None:
    if not name:
        raise ValueError(f"door {name} is locked: " "find the key")
    diagnostics.add(codes.BAD_NAME, "the name is empty", hint="choose " "one")
    names.add("not a diagnostic")
    self._log.warning("opening %s" if name else "opening a door", name)
    print("not a log line")
'''


@pytest.mark.parametrize(
    ("collect", "texts"),
    [
        (
            collect_prose,
            {(1, "Open doors."), (2, "First line,\nsecond line."), (5, "Doors\nat most.")},
        ),
        (
            collect_errors,
            {
                (11, "door {name} is locked: find the key"),
                (12, "the name is empty"),
                (12, "choose one"),
            },
        ),
        (collect_log_lines, {(14, "opening %s | opening a door")}),
    ],
)
def test_texts_of_each_kind_are_collected(
    collect: Callable[[Path, str], Iterator[Text]], texts: set[tuple[int, str]]
) -> None:
    assert {(text.line, text.text) for text in collect(FILE, SOURCE)} == texts


def test_the_same_seed_draws_the_same_sample(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_texts, "SOURCES", sample_texts.SOURCES / "core")

    def sample(seed: int) -> str:
        sample_texts.print_sample("Docstrings", collect_prose, 30, seed)
        return capsys.readouterr().out

    assert sample(1) == sample(1) != sample(2)
