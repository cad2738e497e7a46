from __future__ import annotations

from cogwork.contracts.servo import ServoContract


class TestFake(ServoContract):
    model = "fake"
    attributes = {"degrees_per_second": 100, "maximum": 200}
    far = 200
