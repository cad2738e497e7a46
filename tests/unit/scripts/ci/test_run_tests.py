"""Tests that fail get a second try, if they are few."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.ci.record import Record, read_records
from tests.support.paths import REPOSITORY

# Each starts pytest.
pytestmark = pytest.mark.long

LUCKY = """
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range({lucky}))
def test_that_needs_luck(number):
    seen = Path(f"seen {{number}}")
    assert seen.exists() or seen.touch(), "it was unlucky"

def test_that_passes():
    pass
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    printed: str
    records: list[Record]


def run_tests(directory: Path, source: str) -> Outcome:
    (directory / "test_it.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "scripts.ci.run_tests", "unit", "test_it.py"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, read_records(directory / "build/ci"))


def test_passing_tests_are_recorded(tmp_path: Path) -> None:
    outcome = run_tests(tmp_path, LUCKY.format(lucky=0).replace("range(0)", "[]"))
    assert outcome.code == 0
    (record,) = outcome.records
    assert (record.name, record.ran, record.second_tries) == ("unit", 1, {})


@pytest.mark.parametrize("lucky", [1, 3])
def test_a_few_failures_get_a_second_try(tmp_path: Path, lucky: int) -> None:
    outcome = run_tests(tmp_path, LUCKY.format(lucky=lucky))
    assert outcome.code == 0
    (record,) = outcome.records
    assert record.ran == lucky + 1
    assert len(record.second_tries) == lucky
    assert all("it was unlucky" in why for why in record.second_tries.values())


def test_many_failures_get_none(tmp_path: Path) -> None:
    outcome = run_tests(tmp_path, LUCKY.format(lucky=4))
    assert outcome.code == 1
    assert "4 tests failed, too many to run them again" in outcome.printed
    assert not outcome.records


@pytest.mark.parametrize("source", ["def test_it():\n    assert False", "import nothing_there"])
def test_failures_stay_failures(tmp_path: Path, source: str) -> None:
    outcome = run_tests(tmp_path, source)
    assert outcome.code != 0
    assert not outcome.records
