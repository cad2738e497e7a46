"""A sensor on a serial port, whose device repeats its line, fulfills its contract."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import pytest

from cogwork.contracts.sensor import SensorContract


class TestSerial(SensorContract):
    model = "serial"

    @pytest.fixture(autouse=True)
    def device(self) -> Iterator[None]:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        type(self).attributes = {"port": os.ttyname(theirs)}
        stop = threading.Event()
        thread = threading.Thread(target=_repeat, args=(ours, stop))
        thread.start()
        yield
        stop.set()
        thread.join()
        os.close(ours)
        os.close(theirs)


def _repeat(end: int, stop: threading.Event) -> None:
    while not stop.wait(0.01):
        with contextlib.suppress(BlockingIOError):  # nobody reads yet
            os.write(end, b'{"temperature": 21.5}\n')
