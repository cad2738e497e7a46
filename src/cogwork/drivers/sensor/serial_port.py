"""A thread that reads lines from a serial port, and opens it again when the cable is pulled."""

from __future__ import annotations

import asyncio
import errno
import logging
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import serial
from serial.tools import list_ports

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.drivers.sensor.serial_lines import BadLine, Lines, Readings

_PAUSES = (0.25, 0.5, 1.0, 2.0)
"""Seconds before the port is opened again; the last one stays."""
_WAIT = 1.0
"""Seconds that a read blocks at most, and a write."""
_MOST = 4096
"""Bytes of one read."""
_ENDING = 5.0
"""Seconds that the thread gets to end."""


class PortFault(CogworkError):
    """A serial port that cannot be used, and why."""

    status = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Received:
    values: Readings
    at: float
    """On the clock's own time."""


class SerialPort:
    def __init__(
        self,
        port: str,
        baud_rate: int,
        parse: Callable[[bytes], Readings],
        clock: Clock,
        logger: logging.Logger,
    ) -> None:
        """`parse`: raises BadLine."""
        self.newest: Received | None = None
        self.opened_at: float | None = None
        """When it was opened for the first time, on the clock's own time."""
        self.fault: str | None = None
        """Why the port is not open."""
        self.unreadable: str | None = None
        """Why the newest line was none, until one is."""
        self.received = 0
        self.refused = 0
        self._port = port
        self._baud_rate = baud_rate
        self._parse = parse
        self._clock = clock
        self._log = logger
        self._opened: Any = None
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._news = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=f"serial-{port}", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    async def news(self, seconds: float) -> None:
        """Until there is a line, or trouble, for the first time."""
        await self._clock.wait([self._news], seconds)

    def write(self, text: str) -> None:
        """Blocks for a second at most. From any thread."""
        opened = self._opened
        if opened is None:
            raise PortFault(self.fault or f"{self._port} is not open yet")
        try:
            opened.write(text.encode())
        except serial.SerialTimeoutException:
            raise PortFault(f"{self._port} takes nothing: the other side does not read") from None
        except Exception as error:  # also those of a port that was closed meanwhile
            raise PortFault(f"{self._port} is gone: {error}") from None

    async def aclose(self) -> None:
        self._stop.set()
        with suppress(Exception):  # it may be closing by itself
            self._opened.cancel_read()
        await self._clock.wait([self._ended], _ENDING)
        if self._ended.done():
            self._thread.join()
        else:
            self._log.warning("%s does not let go; its thread is left to itself", self._port)

    # The thread's side.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            before = self.received + self.refused
            try:
                self._read_on()
            except Exception as error:
                # pyserial lets the errors of termios through, and others of a port that is closed
                # meanwhile. Whatever it was: without this thread nothing is read any more.
                self._lose(explained(self._port, error))
            if self.received + self.refused > before:
                failures = 0
            self._stop.wait(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1
        self._tell(self._end)

    def _read_on(self) -> None:
        with serial.Serial(
            self._port, self._baud_rate, timeout=_WAIT, write_timeout=_WAIT, exclusive=True
        ) as opened:
            if self.fault is not None:
                self._log.info("%s is open again", self._port)
            self.fault = None
            self.opened_at = self.opened_at or self._clock.monotonic()
            self._opened = opened
            lines = Lines()
            try:
                while not self._stop.is_set():
                    data = opened.read(min(max(opened.in_waiting, 1), _MOST))
                    too_long = lines.too_long
                    for line in lines.feed(data):
                        self._take(line)
                    if lines.too_long > too_long:
                        self._refuse("it does not end")
            finally:
                self._opened = None

    def _take(self, line: bytes) -> None:
        try:
            values = self._parse(line)
        except BadLine as error:
            self._refuse(str(error))
            return
        self.received += 1
        self.unreadable = None
        self.newest = Received(values, self._clock.monotonic())
        if self.received == 1:
            self._tell(self._wake)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        self.unreadable = reason

    def _lose(self, fault: str) -> None:
        if self.fault is None and not self._stop.is_set():
            self._log.warning("%s; it is tried again", fault)
        self.fault = fault
        self._tell(self._wake)

    def _tell(self, what: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            self._stop.set()  # the loop is gone, and so is everybody who would read

    # The loop's side.

    def _end(self) -> None:
        self._ended.set_result(None)

    def _wake(self) -> None:
        if not self._news.done():
            self._news.set_result(None)


def explained(port: str, error: BaseException) -> str:
    """What a person can do about it."""
    number = error.args[0] if isinstance(error, termios.error) else getattr(error, "errno", None)
    if number == errno.ENOENT:
        found = sorted(each.device for each in list_ports.comports())
        those = f"there are {', '.join(found)}" if found else "there is no other, either"
        return f'there is no {port}: plug it in, or change "port"; {those}'
    if number in (errno.EACCES, errno.EPERM):
        return (
            f"this user may not open {port}: run `sudo usermod -aG dialout $USER`, log in again "
            "and start the server anew"
        )
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"another program has {port}: end it"
    return f"{port} cannot be read: {error}"
