from __future__ import annotations

import asyncio

import pytest
from tests.unit.drivers.gpio.wiring import RecordingBoard

from cogwork.core.clock import ManualClock
from cogwork.drivers.gpio.h_bridge import HBridge, PinWrite, plan_writes
from cogwork.drivers.motor.attributes import GpioMotorPins

DIR_PWM = GpioMotorPins(dir="d", pwm="p")
A_B = GpioMotorPins(a="a", b="b")
A_B_PWM = GpioMotorPins(a="a", b="b", pwm="p", en_high="h", en_low="l")


@pytest.mark.parametrize(
    ("pins", "power", "levels"),
    [
        (DIR_PWM, 0.5, {"d": True, "p": 0.5}),
        (DIR_PWM, -0.25, {"d": False, "p": 0.25}),
        (DIR_PWM, 0.0, {"d": False, "p": 0.0}),
        (A_B, 1.0, {"a": 1.0, "b": 0.0}),
        (A_B, -0.75, {"a": 0.0, "b": 0.75}),
        (A_B, 0.0, {"a": 0.0, "b": 0.0}),
        (A_B_PWM, 0.5, {"a": True, "b": False, "p": 0.5, "h": True, "l": False}),
        (A_B_PWM, -0.5, {"a": False, "b": True, "p": 0.5, "h": True, "l": False}),
        (A_B_PWM, 0.0, {"a": False, "b": False, "p": 0.0, "h": False, "l": True}),
    ],
)
def test_plan_writes_sets_the_levels_for_a_power(
    pins: GpioMotorPins, power: float, levels: dict[str, bool | float]
) -> None:
    assert {write.pin: write.level for write in plan_writes(pins, power)} == levels


def test_direction_is_set_before_power() -> None:
    assert plan_writes(A_B_PWM, 0.5)[-1] == PinWrite("p", 0.5)


def test_power_is_removed_before_the_direction() -> None:
    assert plan_writes(A_B_PWM, 0.0)[0] == PinWrite("p", 0.0)


@pytest.mark.parametrize("broken", ["a", "b", "p", "h", "l"])
async def test_failing_pin_does_not_prevent_rest_of_the_others(broken: str) -> None:
    board = RecordingBoard()
    bridge = await HBridge.connect(board, A_B_PWM, 0)
    await bridge.drive(-1.0)
    driven = board.level(broken)
    board.broken = broken
    with pytest.raises(OSError, match="the wire is loose"):
        await bridge.drive(0.0)
    rest = {"a": 0.0, "b": 0.0, "p": 0.0, "h": 0.0, "l": 1.0}
    assert {name: board.level(name) for name in rest} == {**rest, broken: driven}
    assert bridge.power == -1
    board.broken = None
    await bridge.drive(0.0)
    assert bridge.power == 0


async def test_cancelled_drive_still_sets_every_pin_to_rest() -> None:
    """The cancellation is raised, not the failure of a later pin."""
    board = RecordingBoard()
    clock = ManualClock()
    bridge = await HBridge.connect(board, A_B_PWM, 0)
    await bridge.drive(1.0)
    board.gates["p"] = asyncio.Event()
    board.broken = "a"
    resting = asyncio.ensure_future(bridge.drive(0.0))
    await clock.settle()
    resting.cancel()
    await asyncio.wait([resting])
    assert resting.cancelled()
    assert board.level("h") == 0
