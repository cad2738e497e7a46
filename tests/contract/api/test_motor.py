from __future__ import annotations

from cogwork.contracts.motor import MotorContract


class TestFake(MotorContract):
    model = "fake"


class TestFakeWithoutPosition(MotorContract):
    model = "fake"
    unsupported_methods = ("GetPosition", "GoTo", "ResetZeroPosition")
    attributes = {"position_reporting": False}
