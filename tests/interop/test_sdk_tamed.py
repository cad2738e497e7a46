"""Side effects of importing the SDK are undone; each test runs in a child process."""

from __future__ import annotations

import subprocess
import sys

TAMED = "from cogwork.resource.sdk import clean_import\n"


def run_python(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout, done.stderr


def test_sdk_class_logs_each_line_once_at_our_levels() -> None:
    program = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(levelname)s %(message)s")
from viam.components.sensor import Sensor
from viam.logging import getLogger, setLevel

class Mine(Sensor):
    async def get_readings(self, **_):
        return {}

mine = Mine("thermometer")
mine.logger.info("from the class")
mine.logger.debug("debug from the class")
getLogger("helper").warning("from a helper")
setLevel(logging.ERROR)
mine.logger.info("again")
"""
    out, err = run_python(TAMED + program)
    lines = [line for line in out.splitlines() if "Using selector" not in line]
    assert lines == [
        "INFO from the class",
        "DEBUG debug from the class",
        "WARNING from a helper",
        "INFO again",
    ]
    assert err == ""


def test_uncaught_error_is_printed_as_by_python() -> None:
    out, err = run_python(TAMED + "raise ValueError('once')")
    assert out == ""
    assert err.startswith("Traceback (most recent call last):")
    assert err.count("ValueError: once") == 1
    assert "Uncaught exception" not in err
