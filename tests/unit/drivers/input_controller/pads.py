"""A gamepad that is operated by a test."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any

from evdev import AbsInfo, InputEvent, ecodes

from cogwork.drivers.input_controller.gamepad_device import GamepadFault

STICK = AbsInfo(value=0, min=-32768, max=32767, fuzz=16, flat=128, resolution=0)
TRIGGER = AbsInfo(value=0, min=0, max=255, fuzz=0, flat=0, resolution=0)
HAT = AbsInfo(value=0, min=-1, max=1, fuzz=0, flat=0, resolution=0)
BUTTONS = [ecodes.BTN_SOUTH, ecodes.BTN_START, ecodes.BTN_TL, ecodes.BTN_MODE, ecodes.KEY_A]
AXES = {
    ecodes.ABS_X: STICK,
    ecodes.ABS_RY: STICK,
    ecodes.ABS_Z: TRIGGER,
    ecodes.ABS_HAT0X: HAT,
    ecodes.ABS_MISC: HAT,
}


class FakePad:
    """Implements the interface of evdev's InputDevice."""

    path = "/dev/input/event7"
    name = "Test Pad"

    def __init__(self) -> None:
        self.fd, self._push = os.pipe()
        os.set_blocking(self.fd, False)
        self.pressed: list[int] = []
        self.is_gone = False
        self._waiting: list[InputEvent] = []

    def capabilities(self) -> dict[int, Any]:
        return {ecodes.EV_KEY: BUTTONS, ecodes.EV_ABS: list(AXES.items())}

    def active_keys(self) -> list[int]:
        return self.pressed

    def absinfo(self, code: int) -> AbsInfo:
        return AXES[code]

    def read(self) -> Iterator[InputEvent]:
        if self.is_gone:
            raise OSError(errno.ENODEV, "No such device")
        os.read(self.fd, 100)
        waiting, self._waiting = self._waiting, []
        return iter(waiting)

    def close(self) -> None:
        for end in (self.fd, self._push):
            os.close(end)

    def emit(self, kind: int, code: int, value: int) -> None:
        self._waiting.append(InputEvent(100, 500_000, kind, code, value))
        os.write(self._push, b"!")

    def unplug(self) -> None:
        self.is_gone = True
        os.write(self._push, b"!")


class FakeDesk:
    """Finds the gamepad that is plugged in, if any."""

    def __init__(self) -> None:
        self.pad: FakePad | None = None
        self.fault: Exception | None = None

    def find(self, path: str) -> FakePad:
        if self.fault is not None:
            raise self.fault
        if self.pad is None or self.pad.is_gone:
            raise GamepadFault(f"no gamepad is at {path or 'hand'}")
        return self.pad
