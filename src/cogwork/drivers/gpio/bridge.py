"""How a motor driver is wired, and what its pins must be for a power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viam.components.board import Board

from cogwork.drivers.gpio.wire import Wire
from cogwork.drivers.motor.attributes import GpioMotorPins


@dataclass(frozen=True, slots=True)
class Write:
    pin: str
    level: bool | float
    """High or low, or, as a number, the share of the time that it is high."""


def writes(pins: GpioMotorPins, power: float) -> list[Write]:
    """In this order: a motor driver never sees a speed with a direction that it is not for."""
    speed = abs(power)
    if pins.dir:
        steer, drive = [Write(pins.dir, power > 0)], [Write(pins.pwm, speed)]
    elif pins.pwm:
        steer = [Write(pins.a, power > 0), Write(pins.b, power < 0)]
        drive = [Write(pins.pwm, speed)]
    else:
        idle, driven = (pins.b, pins.a) if power >= 0 else (pins.a, pins.b)
        steer, drive = [Write(idle, 0.0)], [Write(driven, speed)]
    enable = _enable(pins, power != 0)
    return [*steer, *enable, *drive] if power else [*drive, *steer, *enable]


def _enable(pins: GpioMotorPins, on: bool) -> list[Write]:
    high = [Write(pins.en_high, on)] if pins.en_high else []
    low = [Write(pins.en_low, not on)] if pins.en_low else []
    return [*high, *low]


class Bridge:
    """A motor driver on the pins of a board."""

    def __init__(self, pins: GpioMotorPins, wires: Mapping[str, Wire]) -> None:
        self.power = 0.0
        """What drives it, from -1 to 1. What it was told and failed may drive it, too, and counts
        until it is at rest."""
        self.told = 0.0
        """The power that it was told last, whatever came of it."""
        self._pins = pins
        self._wires = wires
        self._settled = False

    @classmethod
    async def on(cls, board: Board, pins: GpioMotorPins, pwm_freq: int) -> Bridge:
        """At rest."""
        bridge = cls(pins, {name: await Wire.to(board, name) for name in pins.names})
        if pwm_freq:
            for name in pins.pulsed:
                await bridge._wires[name].pulse_at(pwm_freq)
        await bridge.drive(0.0)
        return bridge

    async def drive(self, power: float) -> None:
        """What it is told again it does not do again, but for rest, which is always made sure."""
        if power and self._settled and power == self.power:
            return
        if self.power * power < 0:
            await self._write(0.0)
        await self._write(power)

    async def _write(self, power: float) -> None:
        self.told = power
        self.power = power or self.power
        self._settled = False
        if power:
            for write in writes(self._pins, power):
                await self._set(write)
        else:
            await self._rest()
        self.power = power
        self._settled = True

    async def _rest(self) -> None:
        """Every pin, even if some fail or whoever asked is gone: each of them may be the one that
        ends it."""
        failed: BaseException | None = None
        for write in writes(self._pins, 0.0):
            try:
                await self._set(write)
            except BaseException as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def _set(self, write: Write) -> None:
        wire = self._wires[write.pin]
        if isinstance(write.level, bool):
            await wire.set(write.level)
        else:
            await wire.pulse(write.level)
