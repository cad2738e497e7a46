"""The wiring of a motor driver and the pin levels for a power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viam.components.board import Board

from cogwork.drivers.gpio.pin_link import PinLink
from cogwork.drivers.motor.attributes import GpioMotorPins


@dataclass(frozen=True, slots=True)
class PinWrite:
    pin: str
    level: bool | float
    """True for high, False for low, or a number for a duty cycle."""


def plan_writes(pins: GpioMotorPins, power: float) -> list[PinWrite]:
    """Return the pin writes for a power, ordered so that the wrong direction never has power."""
    speed = abs(power)
    if pins.dir:
        steer, drive = [PinWrite(pins.dir, power > 0)], [PinWrite(pins.pwm, speed)]
    elif pins.pwm:
        steer = [PinWrite(pins.a, power > 0), PinWrite(pins.b, power < 0)]
        drive = [PinWrite(pins.pwm, speed)]
    else:
        idle, driven = (pins.b, pins.a) if power >= 0 else (pins.a, pins.b)
        steer, drive = [PinWrite(idle, 0.0)], [PinWrite(driven, speed)]
    enable = _enable_writes(pins, power != 0)
    return [*steer, *enable, *drive] if power else [*drive, *steer, *enable]


def _enable_writes(pins: GpioMotorPins, on: bool) -> list[PinWrite]:
    high = [PinWrite(pins.en_high, on)] if pins.en_high else []
    low = [PinWrite(pins.en_low, not on)] if pins.en_low else []
    return [*high, *low]


class HBridge:
    """A motor driver on the pins of a board."""

    def __init__(self, pins: GpioMotorPins, links: Mapping[str, PinLink]) -> None:
        self.power = 0.0
        """The power of the motor, from -1 to 1.

        After a failed write, it is the last nonzero power, until the motor is at rest.
        """
        self.requested_power = 0.0
        """The last requested power, whether or not the write succeeded."""
        self._pins = pins
        self._links = links
        self._settled = False

    @classmethod
    async def connect(cls, board: Board, pins: GpioMotorPins, pwm_freq: int) -> HBridge:
        """Connect to the pins and set them to rest."""
        bridge = cls(pins, {name: await PinLink.connect(board, name) for name in pins.names})
        if pwm_freq:
            for name in pins.pwm_pins:
                await bridge._links[name].set_pwm_frequency(pwm_freq)
        await bridge.drive(0.0)
        return bridge

    async def drive(self, power: float) -> None:
        """Apply the power, unless it is already applied. A power of 0 is always written to the
        pins."""
        if power and self._settled and power == self.power:
            return
        if self.power * power < 0:
            await self._write(0.0)
        await self._write(power)

    def emergency_stop(self) -> None:
        """Set every pin to rest, even if some pins fail; then raise the first error."""
        first_error: Exception | None = None
        for write in plan_writes(self._pins, 0.0):
            try:
                self._links[write.pin].set_without_loop(bool(write.level))
            except Exception as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        self.requested_power = self.power = 0.0
        self._settled = False

    async def _write(self, power: float) -> None:
        self.requested_power = power
        self.power = power or self.power
        self._settled = False
        if power:
            for write in plan_writes(self._pins, power):
                await self._set(write)
        else:
            await self._write_rest()
        self.power = power
        self._settled = True

    async def _write_rest(self) -> None:
        """Set every pin to rest, even if some pins fail or the caller is cancelled: any of the pins
        may be the one that stops the motor."""
        first_error: BaseException | None = None
        for write in plan_writes(self._pins, 0.0):
            try:
                await self._set(write)
            except BaseException as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    async def _set(self, write: PinWrite) -> None:
        link = self._links[write.pin]
        if isinstance(write.level, bool):
            await link.set(write.level)
        else:
            await link.set_pwm(write.level)
