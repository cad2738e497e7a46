"""A sensor that reads what its configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from cogwork.config.fields import Attributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class FakeSensorAttributes(Attributes):
    readings: dict[str, JsonValue] = {"a": 1, "b": 2, "c": 3}
    """What every reading returns."""


class FakeSensor:
    def __init__(self, name: ResourceName, attributes: FakeSensorAttributes) -> None:
        self.name = name.name
        self._readings = attributes.readings

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeSensorAttributes, dependencies: Dependencies
    ) -> FakeSensor:
        del dependencies
        return cls(name, attributes)

    async def reconfigure(
        self, attributes: FakeSensorAttributes, dependencies: Dependencies
    ) -> None:
        del dependencies
        self._readings = attributes.readings

    async def get_readings(self) -> Mapping[str, JsonValue]:
        return self._readings
