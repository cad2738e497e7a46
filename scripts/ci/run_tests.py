"""Run tests, and retry the failed tests alone.

`python -m scripts.ci.run_tests NAME PYTEST_ARGUMENT ...` records under NAME the duration, the
number of tests, and the tests that needed a retry. A few tests fail when others run at the same
time on a slow computer. Each such failure is a bug to understand.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from scripts.ci.junit import RunSummary, read_summary
from scripts.ci.record import DIRECTORY, Record, write_record

MAX_SECOND_TRIES = 3
_TESTS_FAILED = 1
"""Pytest's exit code for failed tests. Other codes mean that pytest could not run all tests."""


def main() -> int:
    name, *arguments = sys.argv[1:]
    began = time.monotonic()
    code, run = _run_pytest(name, *arguments)
    if code == _TESTS_FAILED and _may_try_again(run):
        code, _ = _run_pytest(f"{name} again", *arguments, "--last-failed", "--numprocesses=0")
    if code == 0:
        seconds = time.monotonic() - began
        write_record(Record(name, seconds, run.ran, run.skipped, run.failures))
    return code


def _may_try_again(run: RunSummary) -> bool:
    if not run.failures:
        return False
    if len(run.failures) > MAX_SECOND_TRIES:
        print(f"{len(run.failures)} tests failed, too many to run them again")
        return False
    print("These failed beside others and run again alone:", *run.failures, sep="\n  ", flush=True)
    return True


def _run_pytest(name: str, *arguments: str) -> tuple[int, RunSummary]:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    report = DIRECTORY / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *arguments]
    code = subprocess.run(command, check=False).returncode
    return code, _read_if_any(report)


def _read_if_any(report: Path) -> RunSummary:
    return read_summary(report) if report.exists() else RunSummary(0, 0, {})


if __name__ == "__main__":
    sys.exit(main())
