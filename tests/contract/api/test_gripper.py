from __future__ import annotations

from cogwork.contracts.gripper import GripperContract


class TestFake(GripperContract):
    model = "fake"
    attributes = {"opening_mm": 40}


class TestWithSomethingToHold(GripperContract):
    model = "fake"
    attributes = {"opening_mm": 80, "object_width_mm": 40}
