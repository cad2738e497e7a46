"""The mapping of gamepad buttons and axes to controls. Pure: independent of any device."""

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
_BUTTON_EVENTS = {0: EventType.BUTTON_RELEASE, 1: EventType.BUTTON_PRESS, 2: EventType.BUTTON_HOLD}

Capabilities = Mapping[int, Sequence[Any]]
"""Capabilities as evdev returns them: codes by event type, axes with their ranges."""


@dataclass(frozen=True, slots=True)
class Axis:
    control: Control
    minimum: int
    maximum: int
    flat: int
    """Distance from the center up to which the axis counts as centered."""

    def position(self, value: int) -> float:
        """Return the position from -1 to 1."""
        center = (self.minimum + self.maximum) / 2
        if abs(value - center) <= self.flat or self.maximum <= self.minimum:
            return 0.0
        return max(-1.0, min(1.0, (value - center) / (self.maximum - center)))


def looks_like_gamepad(capabilities: Capabilities) -> bool:
    """Return whether the device has a stick and a button; keyboards and mice do not have both."""
    axes = {code for code, _ in capabilities.get(ecodes.EV_ABS, ())}
    buttons = set(capabilities.get(ecodes.EV_KEY, ()))
    return bool(buttons & {ecodes.BTN_SOUTH, ecodes.BTN_TRIGGER}) and ecodes.ABS_X in axes


class GamepadControls:
    """The controls of one gamepad."""

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

    def to_event(self, kind: int, code: int, value: int, time: float) -> Event | None:
        """Convert an evdev event; return None if the API has no name for its button or axis."""
        if kind == ecodes.EV_KEY and code in self._buttons and value in _BUTTON_EVENTS:
            return Event(time, _BUTTON_EVENTS[value], self._buttons[code], float(value > 0))
        if kind == ecodes.EV_ABS and code in self._axes:
            axis = self._axes[code]
            position = axis.position(value)
            return Event(time, EventType.POSITION_CHANGE_ABSOLUTE, axis.control, position)
        return None

    def read_state(self, device: Any, time: float) -> list[Event]:
        """Return events with the current state of the evdev device."""
        pressed = set(device.active_keys())
        buttons = (
            self.to_event(ecodes.EV_KEY, code, int(code in pressed), time) for code in self._buttons
        )
        axes = (
            self.to_event(ecodes.EV_ABS, code, device.absinfo(code).value, time)
            for code in self._axes
        )
        return [event for event in (*axes, *buttons) if event is not None]
