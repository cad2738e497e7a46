from __future__ import annotations

from cogwork.contracts.sensor import SensorContract


class TestFake(SensorContract):
    model = "fake"


class TestSystem(SensorContract):
    model = "system"
