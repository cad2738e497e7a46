"""A sensor on a serial port that sends its readings line by line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from viam.components.sensor import Sensor

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.workers import Workers
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.sensor.attributes import SerialSensorAttributes
from cogwork.drivers.sensor.serial_lines import parse_line
from cogwork.drivers.sensor.serial_port import PortFault, SerialPort
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_FIRST_LINE_TIMEOUT = 3.0
"""Seconds that callers wait for the first line."""


class NoReadings(CogworkError):
    """The sensor has not sent a valid line yet, or not recently."""

    status = "UNAVAILABLE"


class SerialSensor(NoGeometry, Sensor):
    """A sensor that can be built while its cable is unplugged. Readings then fail with the
    reason."""

    def __init__(
        self, name: ResourceName, attributes: SerialSensorAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._writer = Workers(f"sensor-{name.name}", waiting=8)
        self._port = SerialPort(
            attributes.port,
            attributes.baud_rate,
            partial(parse_line, attributes.format, attributes.fields),
            clock,
            logger_of(name),
        )

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: SerialSensorAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> SerialSensor:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    @property
    def fault(self) -> str | None:
        return self._port.fault or self._stale_reason()

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        """Return the readings of the newest line; wait if no line has arrived yet."""
        await self._port.wait_for_first_event(_FIRST_LINE_TIMEOUT)
        if self._port.fault is not None:
            raise PortFault(f"{self._port.fault}{self._format_last_line_age()}")
        stale = self._stale_reason()
        if stale is not None:
            raise NoReadings(stale)
        newest = self._port.newest
        if newest is None:
            raise NoReadings(f"{self._attributes.port} sent {self._describe_silence(' yet')}")
        return newest.values

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Handle `{"write": "text"}`, which sends the text as a line."""
        text = command.get("write")
        if not isinstance(text, str) or len(command) > 1:
            raise InvalidRequest(
                f'sensor "{self.name}" supports one command, to send a line: {{"write": "text"}}'
            )
        await self._writer.run(self._port.write, f"{text}\n")
        return {}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "is_open": self._port.is_open,
            "reason": self.fault or "",
            "lines": self._port.received,
            "unreadable": self._port.rejected,
            "why_unreadable": self._port.parse_error or "",
            "age_seconds": self._age(),
        }

    async def close(self) -> None:
        self._writer.close()
        await self._port.aclose()

    def _stale_reason(self) -> str | None:
        since = self._port.newest.at if self._port.newest else self._port.opened_at
        age = 0.0 if since is None else self._clock.monotonic() - since
        if age <= (self._attributes.stale_after or math.inf):
            return None
        return f"{self._attributes.port} sent {self._describe_silence(f' for {age:.1f} s')}"

    def _describe_silence(self, how_long: str) -> str:
        reason = self._port.parse_error
        if reason is None:
            return f"nothing{how_long}"
        kind = self._attributes.format
        return f'no valid "{kind}" line{how_long} ({reason}); check "baud_rate"'

    def _format_last_line_age(self) -> str:
        age = self._age()
        return "" if age is None else f"; the last line is {age:.1f} s old"

    def _age(self) -> float | None:
        newest = self._port.newest
        return None if newest is None else self._clock.monotonic() - newest.at
