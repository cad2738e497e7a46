import logging

import pytest

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
