"""The record of a test run, stored in a file until the report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

DIRECTORY = Path("build/ci")


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    """The name of the step, such as "unit 3.11"."""
    seconds: float
    ran: int = 0
    skipped: int = 0
    second_tries: dict[str, str] = field(default_factory=dict)
    """The reasons of first failures, for tests that passed when they were retried."""


def write_record(record: Record, directory: Path = DIRECTORY) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{record.name}.json").write_text(json.dumps(asdict(record), indent=2) + "\n")


def read_records(directory: Path = DIRECTORY) -> list[Record]:
    """Return the records, oldest first."""
    files = sorted(directory.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    return [Record(**json.loads(file.read_text())) for file in files]
