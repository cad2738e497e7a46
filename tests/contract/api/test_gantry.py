from __future__ import annotations

from cogwork.contracts.gantry import GantryContract


class TestFake(GantryContract):
    model = "fake"


class TestThreeAxes(GantryContract):
    model = "fake"
    attributes = {"lengths_mm": [500, 400, 300], "speed_mm_per_sec": 100}
    near = (5.0, 0.0, 10.0)
    far = (500.0, 400.0, 300.0)
