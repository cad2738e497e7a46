from __future__ import annotations

from cogwork.contracts.movement_sensor import MovementSensorContract


class TestFake(MovementSensorContract):
    model = "fake"


class TestFakeOnABase(MovementSensorContract):
    model = "fake"
    attributes = {"base": "b"}
    other_resources = ({"name": "b", "api": "rdk:component:base", "model": "fake"},)


class TestWheeledOdometry(MovementSensorContract):
    model = "wheeled-odometry"
    unsupported_methods = ("GetLinearAcceleration",)
    attributes = {
        "left_motors": ["left"],
        "right_motors": ["right"],
        "base": "b",
        "time_interval_msec": 10,
    }
    other_resources = (
        *(
            {"name": name, "api": "rdk:component:motor", "model": "fake"}
            for name in ("left", "right")
        ),
        {"name": "b", "api": "rdk:component:base", "model": "fake"},
    )
