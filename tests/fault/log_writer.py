r"""Writes numbered lines to a rotating log file until it is killed.

It reports the number of the last line of each batch once its write has returned. Run as
``log_writer.py <path> <first number>``; it shares its lines with the test that kills it.
"""

import os
import sys
import threading
from itertools import count
from pathlib import Path

from cogwork.core.clock import SystemClock
from cogwork.logs.rotating_file import RotatingFile, Rotation
from cogwork.logs.sink import Sink

ROTATION = Rotation(size=1 << 20, age=0.01, total=6 << 20)
WAITING = 500
"""Lines between the sink's two ends, so that none is left out: some batches are larger than a
file."""


def line(number: int, scale: int = 200) -> bytes:
    """Return a line with its number and length, so that tests can tell whether it is complete."""
    length = (number * 2_654_435_761 % scale) ** 2
    return b"%d %d %s.\n" % (number, length, b"x" * length)


def short_line(number: int) -> bytes:
    """Return a line of at most 1400 bytes."""
    return line(number, scale=37)


def number_of(text: bytes) -> int:
    return int(text.split(b" ", 1)[0])


def main(path: str, first: str) -> None:
    file = RotatingFile(Path(path), ROTATION, SystemClock())
    places = threading.Semaphore(WAITING)

    def write(lines: bytes) -> None:
        file.write(lines)
        last = lines[lines.rfind(b"\n", 0, -1) + 1 :]
        os.write(1, b"%d\n" % number_of(last))
        places.release(lines.count(b"\n"))

    sink = Sink("log", write)
    os.write(1, b"ready\n")
    for number in count(int(first)):
        places.acquire()
        sink.put(line(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
