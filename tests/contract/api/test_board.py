from __future__ import annotations

from cogwork.contracts.board import BoardContract


class TestFake(BoardContract):
    model = "fake"
    attributes = {
        "analogs": [{"name": "joystick", "max": 3.3}],
        "digital_interrupts": [{"name": "door", "pin": "11"}],
    }
    pins = ("11", "37")
    pwm_pins = ("37",)
    readers = ("joystick",)
    writers = ("joystick",)
    interrupts = ("door",)
    drives = {"door": "11"}
