"""A fake sensor that returns configured readings and injects configured faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.sensor import Sensor

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.sensor.attributes import FakeSensorAttributes, FaultAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class ScriptedFault(CogworkError):
    """An error that the configuration injects."""


class FakeSensor(NoGeometry, Sensor):
    def __init__(self, name: ResourceName, attributes: FakeSensorAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._clock = clock
        self._configure(attributes)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeSensorAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeSensor:
        del dependencies
        clock = clock or SystemClock()
        if attributes.start is not None:
            await _inject_fault(attributes.start, clock)
        return cls(name, attributes, clock)

    async def reconfigure(
        self, attributes: FakeSensorAttributes, dependencies: Dependencies
    ) -> None:
        del dependencies
        self._configure(attributes)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        self._calls += 1
        # Select the faults before the first delay: a concurrent reading may change the count.
        faults = [fault for fault in self._faults if fault.applies_to(self._calls)]
        for fault in faults:
            await _inject_fault(fault, self._clock)
        return self._readings

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"calls": self._calls}

    def _configure(self, attributes: FakeSensorAttributes) -> None:
        self._readings = attributes.readings
        self._faults = attributes.faults
        self._calls = 0


async def _inject_fault(fault: FaultAttributes, clock: Clock) -> None:
    if fault.delay:
        await clock.sleep(fault.delay)
    if fault.error is not None:
        raise ScriptedFault(fault.error)
