from __future__ import annotations

import pytest
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cli.fleet.logs import describe_entry, list_levels


@pytest.mark.parametrize(
    ("least", "first"), [("debug", "debug"), ("warn", "warn"), ("error", "error")]
)
def test_level_includes_those_above_it(least: str, first: str) -> None:
    levels = list_levels(least)
    assert levels[0] == first
    assert {"error", "fatal"} <= set(levels)


def test_no_level_means_all() -> None:
    assert list_levels(None) == []


def test_entry_is_described_as_that_of_a_machine() -> None:
    entry = LogEntry(level="WARN", logger_name="rdk", message="hot", stack="at x")
    entry.time.FromMilliseconds(1500)
    entry.fields.add().update({"degrees": 80})
    assert describe_entry(entry) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warn",
        "logger": "rdk",
        "message": "hot",
        "fields": {"degrees": 80.0},
        "trace": "at x",
    }
