from __future__ import annotations

from cogwork.contracts.input_controller import InputControllerContract


class TestFake(InputControllerContract):
    model = "fake"
    control = "ButtonSouth"


class TestFakeWithAScript(InputControllerContract):
    model = "fake"
    attributes = {
        "controls": ["AbsoluteX", "ButtonEast"],
        "events": [{"control": "AbsoluteX", "event": "PositionChangeAbs", "value": -1}],
        "round": "10ms",
    }
    control = "ButtonEast"
