"""A module with a sensor that reads what its attributes say."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from viam.components.sensor import Sensor
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.proto.common import ResourceName
from viam.resource.base import ResourceBase
from viam.resource.easy_resource import EasyResource
from viam.utils import SensorReading, struct_to_dict


class TestSensor(Sensor, EasyResource):
    """`readings`: any JSON."""

    MODEL: ClassVar[Any] = "acme:test:sensor"

    readings: Mapping[str, Any]

    @classmethod
    def new(
        cls, config: ComponentConfig, dependencies: Mapping[ResourceName, ResourceBase]
    ) -> TestSensor:
        sensor = cls(config.name)
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        sensor.readings = attributes.get("readings", {})
        return sensor

    async def get_readings(self, **_: Any) -> Mapping[str, SensorReading]:
        return self.readings

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        return command


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
