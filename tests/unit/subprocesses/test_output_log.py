import logging

import pytest

from cogwork.logs.pipeline import EXTRA_LINES
from cogwork.subprocesses.output import OutputStream
from cogwork.subprocesses.output_log import OutputLog


@pytest.mark.parametrize(
    ("stream", "line", "logger", "level"),
    [
        (OutputStream.STDOUT, "hello", "StdOut", logging.INFO),
        (OutputStream.STDERR, "hello", "StdErr", logging.ERROR),
        (OutputStream.STDERR, "2026-01-01T00:00:00Z\tWARN\thello", "StdErr", logging.WARNING),
    ],
)
def test_lines_are_logged_per_stream(
    stream: OutputStream, line: str, logger: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    OutputLog(logging.getLogger("program.scale")).write(stream, line)
    assert caplog.record_tuples == [(f"program.scale.{logger}", level, line)]


def test_traceback_is_one_entry(caplog: pytest.LogCaptureFixture) -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1'
    OutputLog(logging.getLogger("program.scale")).write(OutputStream.STDERR, text)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "KeyError: 1")
    assert record.__dict__[EXTRA_LINES] == text
