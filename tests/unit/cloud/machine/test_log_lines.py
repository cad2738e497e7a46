"""Log entries as machines send them: what every client can read stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.machine.log_lines import limit_entry, to_line

MAX_NAME, MAX_LEVEL, MAX_MESSAGE = 256, 16, 32 << 10


def limit(**fields: Any) -> LogEntry:
    entry = LogEntry(**fields)
    limit_entry(entry)
    return entry


def test_ordinary_entry_only_gets_a_caller() -> None:
    given: dict[str, Any] = {
        "host": "press",
        "level": "info",
        "logger_name": "rdk",
        "message": "hello",
    }
    entry = limit(**given)
    assert {name: getattr(entry, name) for name in given} == given
    assert (entry.caller["File"], entry.caller["Line"]) == ("", 0)


def test_caller_of_the_machine_is_kept() -> None:
    entry = LogEntry(message="a")
    entry.caller.update({"File": "a.go", "Line": 7, "Function": "f"})
    limit_entry(entry)
    assert dict(entry.caller) == {"File": "a.go", "Line": 7, "Function": "f"}


@pytest.mark.parametrize("caller", [{"File": 7}, {"Line": "7"}, {"File": None, "Line": []}])
def test_caller_that_the_sdk_cannot_read_is_completed(caller: dict[str, Any]) -> None:
    entry = LogEntry(message="a")
    entry.caller.update(caller)
    limit_entry(entry)
    assert (entry.caller["File"], entry.caller["Line"]) == ("", 0)


def test_long_texts_are_cut() -> None:
    long = "x" * 100_000
    entry = limit(host=long, level=long, logger_name=long, message=long, stack=long)
    assert len(entry.host) == len(entry.logger_name) == MAX_NAME
    assert len(entry.level) == MAX_LEVEL
    assert len(entry.message) == len(entry.stack) == MAX_MESSAGE


def test_fields_that_are_too_large_are_left_out() -> None:
    entry = LogEntry(message="a")
    entry.fields.add().update({"key": "x" * 40_000})
    entry.caller.update({"File": "x" * 40_000})
    limit_entry(entry)
    assert len(entry.fields) == 0
    assert entry.caller["File"] == ""


@pytest.mark.parametrize("seconds", [1 << 62, -(1 << 62), 253_402_300_800])
@pytest.mark.parametrize("nanos", [-1, (1 << 31) - 1])
def test_time_is_one_that_can_be_stored(seconds: int, nanos: int) -> None:
    entry = LogEntry(message="a", level="WARN")
    entry.time.seconds, entry.time.nanos = seconds, nanos
    limit_entry(entry)
    line = to_line("part", entry)
    assert (line.part_id, line.level) == ("part", "warn")
    assert LogEntry.FromString(line.entry).time == entry.time
