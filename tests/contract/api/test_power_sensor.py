from __future__ import annotations

from cogwork.contracts.power_sensor import PowerSensorContract


class TestFake(PowerSensorContract):
    model = "fake"


class TestFakeWithAMotor(PowerSensorContract):
    model = "fake"
    attributes = {"motor": "m"}
    other_resources = ({"name": "m", "api": "rdk:component:motor", "model": "fake"},)
