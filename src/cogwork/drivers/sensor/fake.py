"""A sensor that reads what its configuration says, with the trouble it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.sensor import Sensor

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.drivers.sensor.attributes import FakeSensorAttributes, Trouble
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class ScriptedFault(CogworkError):
    """Says what the configuration told it to say."""


class FakeSensor(Shapeless, Sensor):
    def __init__(self, name: ResourceName, attributes: FakeSensorAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._clock = clock
        self._follow(attributes)

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
            await _have(attributes.start, clock)
        return cls(name, attributes, clock)

    async def reconfigure(
        self, attributes: FakeSensorAttributes, dependencies: Dependencies
    ) -> None:
        del dependencies
        self._follow(attributes)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        self._calls += 1
        # Picked ahead of the first delay: another reading may be counted meanwhile.
        troubles = [each for each in self._faults if each.befalls(self._calls)]
        for trouble in troubles:
            await _have(trouble, self._clock)
        return self._readings

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"calls": self._calls}

    def _follow(self, attributes: FakeSensorAttributes) -> None:
        self._readings = attributes.readings
        self._faults = attributes.faults
        self._calls = 0


async def _have(trouble: Trouble, clock: Clock) -> None:
    if trouble.delay:
        await clock.sleep(trouble.delay)
    if trouble.error is not None:
        raise ScriptedFault(trouble.error)
