"""What importing the SDK does to a process, undone. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

TAMED = "from cogwork.resource import sdk\n"


def printed(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout, done.stderr


def test_a_line_logged_by_an_sdk_written_class_appears_once_and_obeys_our_levels() -> None:
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
    out, err = printed(TAMED + program)
    lines = [line for line in out.splitlines() if "Using selector" not in line]
    assert lines == [
        "INFO from the class",
        "DEBUG debug from the class",
        "WARNING from a helper",
        "INFO again",
    ]
    assert err == ""


def test_an_uncaught_error_is_printed_as_python_does() -> None:
    out, err = printed(TAMED + "raise ValueError('once')")
    assert out == ""
    assert err.startswith("Traceback (most recent call last):")
    assert err.count("ValueError: once") == 1
    assert "Uncaught exception" not in err
