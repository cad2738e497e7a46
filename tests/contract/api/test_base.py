from __future__ import annotations

from cogwork.contracts.base import BaseContract


class TestFake(BaseContract):
    model = "fake"


class TestWheeled(BaseContract):
    model = "wheeled"
    attributes = {
        "left": ["left"],
        "right": ["right", "right-too"],
        "width_mm": 300,
        "wheel_circumference_mm": 300,
    }
    other_resources = tuple(
        {
            "name": name,
            "api": "rdk:component:motor",
            "model": "fake",
            "attributes": {"max_rpm": 200},
        }
        for name in ("left", "right", "right-too")
    )
