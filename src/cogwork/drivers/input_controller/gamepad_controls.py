"""What the buttons and axes of a gamepad are called. Pure: it knows no device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evdev import ecodes
from viam.components.input import Control, Event, EventType

_BUTTONS = {
    ecodes.BTN_SOUTH: Control.BUTTON_SOUTH,
    ecodes.BTN_EAST: Control.BUTTON_EAST,
    ecodes.BTN_WEST: Control.BUTTON_WEST,
    ecodes.BTN_NORTH: Control.BUTTON_NORTH,
    ecodes.BTN_TL: Control.BUTTON_LT,
    ecodes.BTN_TR: Control.BUTTON_RT,
    ecodes.BTN_TL2: Control.BUTTON_LT2,
    ecodes.BTN_TR2: Control.BUTTON_RT2,
    ecodes.BTN_THUMBL: Control.BUTTON_L_THUMB,
    ecodes.BTN_THUMBR: Control.BUTTON_R_THUMB,
    ecodes.BTN_SELECT: Control.BUTTON_SELECT,
    ecodes.BTN_START: Control.BUTTON_START,
    ecodes.BTN_MODE: Control.BUTTON_MENU,
    ecodes.KEY_RECORD: Control.BUTTON_RECORD,
    ecodes.KEY_STOP: Control.BUTTON_E_STOP,
}
_AXES = {
    ecodes.ABS_X: Control.ABSOLUTE_X,
    ecodes.ABS_Y: Control.ABSOLUTE_Y,
    ecodes.ABS_Z: Control.ABSOLUTE_Z,
    ecodes.ABS_RX: Control.ABSOLUTE_RX,
    ecodes.ABS_RY: Control.ABSOLUTE_RY,
    ecodes.ABS_RZ: Control.ABSOLUTE_RZ,
    ecodes.ABS_HAT0X: Control.ABSOLUTE_HAT0_X,
    ecodes.ABS_HAT0Y: Control.ABSOLUTE_HAT0_Y,
    ecodes.ABS_GAS: Control.ABSOLUTE_PEDAL_ACCELERATOR,
    ecodes.ABS_BRAKE: Control.ABSOLUTE_PEDAL_BRAKE,
}
_KINDS = {0: EventType.BUTTON_RELEASE, 1: EventType.BUTTON_PRESS, 2: EventType.BUTTON_HOLD}

Capabilities = Mapping[int, Sequence[Any]]
"""As evdev has them: codes by type of event, those of axes with their ranges."""


@dataclass(frozen=True, slots=True)
class Axis:
    control: Control
    least: int
    most: int
    flat: int
    """How far from the middle still is the middle."""

    def position(self, value: int) -> float:
        """From -1 to 1."""
        middle = (self.least + self.most) / 2
        if abs(value - middle) <= self.flat or self.most <= self.least:
            return 0.0
        return max(-1.0, min(1.0, (value - middle) / (self.most - middle)))


def looks_like_gamepad(capabilities: Capabilities) -> bool:
    """Keyboards have keys, and mice axes; a stick with a button is neither."""
    axes = {code for code, _ in capabilities.get(ecodes.EV_ABS, ())}
    buttons = set(capabilities.get(ecodes.EV_KEY, ()))
    return bool(buttons & {ecodes.BTN_SOUTH, ecodes.BTN_TRIGGER}) and ecodes.ABS_X in axes


class Controls:
    """Those of one gamepad."""

    def __init__(self, capabilities: Capabilities) -> None:
        keys = capabilities.get(ecodes.EV_KEY, ())
        self._buttons = {code: _BUTTONS[code] for code in keys if code in _BUTTONS}
        self._axes = {
            code: Axis(_AXES[code], range_.min, range_.max, range_.flat)
            for code, range_ in capabilities.get(ecodes.EV_ABS, ())
            if code in _AXES
        }

    @property
    def names(self) -> list[Control]:
        return [*(axis.control for axis in self._axes.values()), *self._buttons.values()]

    def event(self, kind: int, code: int, value: int, time: float) -> Event | None:
        """None for what the API has no name for."""
        if kind == ecodes.EV_KEY and code in self._buttons and value in _KINDS:
            return Event(time, _KINDS[value], self._buttons[code], float(value > 0))
        if kind == ecodes.EV_ABS and code in self._axes:
            axis = self._axes[code]
            position = axis.position(value)
            return Event(time, EventType.POSITION_CHANGE_ABSOLUTE, axis.control, position)
        return None

    def state(self, device: Any, time: float) -> list[Event]:
        """How everything stands, for whoever missed how it came to that. `device`: evdev's."""
        pressed = set(device.active_keys())
        buttons = (
            self.event(ecodes.EV_KEY, code, int(code in pressed), time) for code in self._buttons
        )
        axes = (
            self.event(ecodes.EV_ABS, code, device.absinfo(code).value, time) for code in self._axes
        )
        return [event for event in (*axes, *buttons) if event is not None]
