"""A thread that reads lines from a serial port, and reopens the port after a failure."""

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
from cogwork.drivers.sensor.serial_lines import BadLine, Readings, SerialLineSplitter

_BACKOFF = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each attempt to reopen the port; the last value repeats."""
_IO_TIMEOUT = 1.0
"""Timeout of a read and of a write, in seconds."""
_READ_SIZE = 4096
"""Maximum bytes of one read."""
_JOIN_TIMEOUT = 5.0
"""Maximum seconds to wait for the thread to end."""


class PortFault(CogworkError):
    """A serial port that cannot be used; the message is the reason."""

    status = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class ReceivedLine:
    values: Readings
    at: float
    """Arrival time in monotonic seconds."""


class SerialPort:
    def __init__(
        self,
        port: str,
        baud_rate: int,
        parse: Callable[[bytes], Readings],
        clock: Clock,
        logger: logging.Logger,
    ) -> None:
        """`parse` raises BadLine for an invalid line."""
        self.newest: ReceivedLine | None = None
        self.opened_at: float | None = None
        """Monotonic time when the port was first opened."""
        self.fault: str | None = None
        """The reason why the port could not be opened or was lost, or None."""
        self.parse_error: str | None = None
        """The reason why the newest line is invalid, or None if it is valid."""
        self.received = 0
        self.rejected = 0
        self._port = port
        self._baud_rate = baud_rate
        self._parse = parse
        self._clock = clock
        self._log = logger
        self._device: Any = None
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._first_event = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=f"serial-{port}", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._device is not None

    async def wait_for_first_event(self, seconds: float) -> None:
        """Wait for the first line or the first fault."""
        await self._clock.wait([self._first_event], seconds)

    def write(self, text: str) -> None:
        """Write the text from any thread; block for at most one second."""
        device = self._device
        if device is None:
            raise PortFault(self.fault or f"{self._port} is not open yet")
        try:
            device.write(text.encode())
        except serial.SerialTimeoutException:
            raise PortFault(f"{self._port} accepts no data: the device is not reading") from None
        except Exception as error:  # the thread may have closed the port
            raise PortFault(f"{self._port} was lost: {error}") from None

    async def aclose(self) -> None:
        self._stop.set()
        with suppress(Exception):  # the thread may have closed the port already
            self._device.cancel_read()
        await self._clock.wait([self._ended], _JOIN_TIMEOUT)
        if self._ended.done():
            self._thread.join()
        else:
            self._log.warning(
                "%s did not close within %gs; abandoning its thread", self._port, _JOIN_TIMEOUT
            )

    # The methods below run in the thread.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            before = self.received + self.rejected
            try:
                self._read_lines()
            except Exception as error:
                # pyserial lets termios errors through, and closing the port causes other errors.
                # Catch all of them: if this thread ended, nothing would read the port.
                self._report_fault(explain_error(self._port, error))
            if self.received + self.rejected > before:
                failures = 0
            self._stop.wait(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
            failures += 1
        self._call_on_loop(self._mark_ended)

    def _read_lines(self) -> None:
        with serial.Serial(
            self._port,
            self._baud_rate,
            timeout=_IO_TIMEOUT,
            write_timeout=_IO_TIMEOUT,
            exclusive=True,
        ) as device:
            if self.fault is not None:
                self._log.info("%s is open again", self._port)
            self.fault = None
            self.opened_at = self.opened_at or self._clock.monotonic()
            self._device = device
            lines = SerialLineSplitter()
            try:
                while not self._stop.is_set():
                    data = device.read(min(max(device.in_waiting, 1), _READ_SIZE))
                    too_long = lines.too_long
                    for line in lines.feed(data):
                        self._handle_line(line)
                    if lines.too_long > too_long:
                        self._reject("it is too long")
            finally:
                self._device = None

    def _handle_line(self, line: bytes) -> None:
        try:
            values = self._parse(line)
        except BadLine as error:
            self._reject(str(error))
            return
        self.received += 1
        self.parse_error = None
        self.newest = ReceivedLine(values, self._clock.monotonic())
        if self.received == 1:
            self._call_on_loop(self._wake)

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        self.parse_error = reason

    def _report_fault(self, fault: str) -> None:
        if self.fault is None and not self._stop.is_set():
            self._log.warning("%s; retrying", fault)
        self.fault = fault
        self._call_on_loop(self._wake)

    def _call_on_loop(self, callback: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            self._stop.set()  # the event loop is closed, so nothing reads the sensor

    # The methods below run on the event loop.

    def _mark_ended(self) -> None:
        self._ended.set_result(None)

    def _wake(self) -> None:
        if not self._first_event.done():
            self._first_event.set_result(None)


def explain_error(port: str, error: BaseException) -> str:
    """Return an error message that says what to do."""
    number = error.args[0] if isinstance(error, termios.error) else getattr(error, "errno", None)
    if number == errno.ENOENT:
        found = sorted(each.device for each in list_ports.comports())
        available = (
            f"available ports: {', '.join(found)}" if found else "no serial ports were found"
        )
        return f'{port} does not exist: plug the device in or change "port"; {available}'
    if number in (errno.EACCES, errno.EPERM):
        return (
            f"permission denied for {port}: run `sudo usermod -aG dialout $USER`, log in again "
            "and restart the server"
        )
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"{port} is in use by another program: stop that program"
    return f"{port} cannot be read: {error}"
