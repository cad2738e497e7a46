from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.support.machine.served import Serve
from viam.components.power_sensor.client import PowerSensorClient

from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.drivers.power_sensor.attributes import FakePowerSensorAttributes
from cogwork.drivers.power_sensor.fake import FakePowerSensor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:power_sensor/p")
MOTOR = ResourceName.parse("rdk:component:motor/m")


async def test_configured_voltage_and_current_are_measured(serve: Serve) -> None:
    attributes = FakePowerSensorAttributes(voltage=230, current=0.5, is_ac=True)
    async with serve(await FakePowerSensor.new(NAME, attributes, {})) as channel:
        client = PowerSensorClient("p", channel)
        assert await client.get_voltage() == (230, True)
        assert await client.get_current() == (0.5, True)
        assert await client.get_power() == 115
        readings = {"voltage": 230, "current": 0.5, "is_ac": True, "power": 115}
        assert await client.get_readings() == readings
        assert await client.get_status() == readings


async def test_current_of_a_motor_depends_on_its_power(serve: Serve) -> None:
    motor = await FakeMotor.new(MOTOR, FakeMotorAttributes(), {})
    attributes = FakePowerSensorAttributes(voltage=10, current=1, motor="m", motor_current=4)
    async with serve(await FakePowerSensor.new(NAME, attributes, {MOTOR: motor})) as channel:
        client = PowerSensorClient("p", channel)
        assert await client.get_current() == (1, False)
        await motor.set_power(-0.5)
        assert await client.get_current() == (3, False)
        assert await client.get_power() == 30
        await motor.stop()
        assert (await client.get_readings())["power"] == 10


def test_invalid_attributes_are_refused() -> None:
    with pytest.raises(ValidationError):
        FakePowerSensorAttributes(motor="m", motor_current=-1)
