"""The result of a test run, from pytest's XML report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The number of tests in a run, and the reasons of failures."""

    ran: int
    skipped: int
    failures: dict[str, str]
    """The reason of the failure, by the name of the test."""


def read_summary(file: Path) -> RunSummary:
    """Read the report. A test that passes but fails in its teardown occurs twice in it."""
    ran, skipped = set(), set()
    failures: dict[str, str] = {}
    for case in ElementTree.parse(file).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if (reason := _find_failure(case)) is not None:
            failures.setdefault(name, reason)
        if case.find("skipped") is not None:
            skipped.add(name)
        else:
            ran.add(name)
    return RunSummary(len(ran), len(skipped - ran), failures)


def _find_failure(case: ElementTree.Element) -> str | None:
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return (found.get("message") or "").strip().partition("\n")[0]
    return None
