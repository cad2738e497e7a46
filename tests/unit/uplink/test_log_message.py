"""Lines of a log as messages to the cloud."""

from __future__ import annotations

import logging

import pytest

from cogwork.logs.entry import Entry
from cogwork.uplink.log_message import to_log_message


def test_line_with_everything() -> None:
    fields = {"count": 2, "path": object, "ok": True, "none": None}
    entry = Entry(1000.25, logging.WARNING, "rdk.arm", "drive.py:50", "it moves", fields, "a\nb")
    found = to_log_message(entry)
    assert (found.level, found.logger_name, found.message, found.stack) == (
        *("warn", "rdk.arm", "it moves", "a\nb"),
    )
    assert found.time.ToMicroseconds() == 1_000_250_000
    assert dict(found.caller) == {"File": "drive.py", "Line": 50}
    values = [dict(each) for each in found.fields]
    assert values == [{"count": 2}, {"path": "<class 'object'>"}, {"ok": True}, {"none": None}]
    assert found.host


@pytest.mark.parametrize(
    ("place", "file", "line"), [("upload", "upload", 0), ("a:b", "a", 0), ("", "", 0)]
)
def test_place_without_a_line(place: str, file: str, line: int) -> None:
    found = to_log_message(Entry(0.0, logging.INFO, "x", place, "y"))
    assert dict(found.caller) == {"File": file, "Line": line}
    assert found.stack == ""
