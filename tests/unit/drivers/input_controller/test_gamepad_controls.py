from __future__ import annotations

import pytest
from evdev import ecodes
from tests.unit.drivers.input_controller.pads import STICK, TRIGGER, FakePad
from viam.components.input import Control, Event, EventType

from cogwork.drivers.input_controller.gamepad_controls import (
    Capabilities,
    GamepadControls,
    looks_like_gamepad,
)

PRESS, RELEASE, HOLD = EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE, EventType.BUTTON_HOLD
MOVE = EventType.POSITION_CHANGE_ABSOLUTE
KEY, ABS = ecodes.EV_KEY, ecodes.EV_ABS
EVERYTHING: Capabilities = {
    KEY: list(range(ecodes.KEY_MAX)),
    ABS: [(code, STICK) for code in range(ecodes.ABS_MAX)],
}


def test_gamepad_controls_are_named_in_order() -> None:
    assert [
        control.value
        for control in GamepadControls(FakePad.capabilities(FakePad.__new__(FakePad))).names
    ] == [
        "AbsoluteX",
        "AbsoluteRY",
        "AbsoluteZ",
        "AbsoluteHat0X",
        "ButtonSouth",
        "ButtonStart",
        "ButtonLT",
        "ButtonMenu",
    ]


def test_every_control_except_the_clutch_can_exist() -> None:
    """Linux has no code for a clutch."""
    found = GamepadControls(EVERYTHING).names
    assert len(found) == len(set(found))
    assert set(Control) - set(found) == {Control.ABSOLUTE_PEDAL_CLUTCH}


@pytest.mark.parametrize(
    ("kind", "code", "value", "event", "control", "position"),
    [
        (KEY, ecodes.BTN_SOUTH, 1, PRESS, Control.BUTTON_SOUTH, 1),
        (KEY, ecodes.BTN_SOUTH, 0, RELEASE, Control.BUTTON_SOUTH, 0),
        (KEY, ecodes.BTN_SOUTH, 2, HOLD, Control.BUTTON_SOUTH, 1),
        (ABS, ecodes.ABS_X, 32767, MOVE, Control.ABSOLUTE_X, 1),
        (ABS, ecodes.ABS_X, -32768, MOVE, Control.ABSOLUTE_X, -1),
        (ABS, ecodes.ABS_X, 16384, MOVE, Control.ABSOLUTE_X, 0.5),
        (ABS, ecodes.ABS_X, 127, MOVE, Control.ABSOLUTE_X, 0),
        (ABS, ecodes.ABS_X, 99_999, MOVE, Control.ABSOLUTE_X, 1),
        (ABS, ecodes.ABS_Z, 0, MOVE, Control.ABSOLUTE_Z, -1),
        (ABS, ecodes.ABS_Z, 255, MOVE, Control.ABSOLUTE_Z, 1),
        (ABS, ecodes.ABS_HAT0X, -1, MOVE, Control.ABSOLUTE_HAT0_X, -1),
    ],
)
def test_kernel_events_become_events_of_the_api(
    kind: int, code: int, value: int, event: EventType, control: Control, position: float
) -> None:
    controls = GamepadControls(FakePad.capabilities(FakePad.__new__(FakePad)))
    found = controls.to_event(kind, code, value, 12.5)
    assert found is not None
    assert (found.time, found.event, found.control) == (12.5, event, control)
    assert found.value == pytest.approx(position, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "code", "value"),
    [
        (KEY, ecodes.KEY_A, 1),
        (KEY, ecodes.BTN_EAST, 1),
        (KEY, ecodes.BTN_SOUTH, 7),
        (ABS, ecodes.ABS_MISC, 1),
        (ecodes.EV_SYN, 0, 0),
        (ecodes.EV_REL, ecodes.REL_X, 3),
    ],
)
def test_events_without_a_control_are_ignored(kind: int, code: int, value: int) -> None:
    found: Event | None = GamepadControls(FakePad.capabilities(FakePad.__new__(FakePad))).to_event(
        kind, code, value, 0
    )
    assert found is None


@pytest.mark.parametrize(
    ("capabilities", "is_one"),
    [
        ({KEY: [ecodes.BTN_SOUTH], ABS: [(ecodes.ABS_X, STICK)]}, True),
        ({KEY: [ecodes.BTN_TRIGGER], ABS: [(ecodes.ABS_X, STICK)]}, True),
        ({KEY: [ecodes.KEY_A, ecodes.KEY_B]}, False),
        ({KEY: [ecodes.BTN_LEFT], ABS: [(ecodes.ABS_X, TRIGGER)]}, False),
        ({KEY: [ecodes.BTN_SOUTH]}, False),
        ({}, False),
    ],
)
def test_looks_like_gamepad_requires_buttons_and_axes(
    capabilities: Capabilities, is_one: bool
) -> None:
    assert looks_like_gamepad(capabilities) is is_one
