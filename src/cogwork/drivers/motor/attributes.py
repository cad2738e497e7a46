"""What the motors read from their configuration."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault


class FakeMotorAttributes(Attributes):
    max_rpm: Annotated[float, Field(gt=0)] = 100.0
    """How many revolutions per minute it makes at full power."""
    position_reporting: bool = True
    """Whether it knows its position, as a motor with an encoder does."""


class GpioMotorPins(Attributes):
    """Which pins of the board the motor driver is wired to: `dir` and `pwm`, or `a` and `b`, or
    `a`, `b` and `pwm`."""

    a: str = ""
    """High to turn forward. Without `pwm`, it carries the power, too."""
    b: str = ""
    """High to turn backward. Without `pwm`, it carries the power, too."""
    dir: str = ""
    """High to turn forward, low to turn backward."""
    pwm: str = ""
    """How much power, as a share of the time that it is high."""
    en_high: str = ""
    """High while the motor is driven."""
    en_low: str = ""
    """Low while the motor is driven."""

    @property
    def names(self) -> list[str]:
        every = (self.a, self.b, self.dir, self.pwm, self.en_high, self.en_low)
        return [name for name in every if name]

    @property
    def pulsed(self) -> list[str]:
        """Those that carry power."""
        return [self.pwm] if self.pwm else [self.a, self.b]

    @model_validator(mode="after")
    def _is_a_wiring(self) -> Self:
        given = {key for key in ("a", "b", "dir", "pwm") if getattr(self, key)}
        if given not in ({"dir", "pwm"}, {"a", "b"}, {"a", "b", "pwm"}):
            raise fault(
                codes.BAD_VALUE,
                'a motor driver is wired to "dir" and "pwm", to "a" and "b", or to "a", "b" and '
                f'"pwm", and not to {" and ".join(sorted(given)) or "nothing"}',
            )
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise fault(codes.BAD_VALUE, f'pin "{twice[0]}" stands here twice')
        return self


class GpioMotorAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that the motor driver is wired to."""
    pins: GpioMotorPins
    """The pins that it is wired to: `dir` and `pwm`, or `a` and `b`, or `a`, `b` and `pwm`; and
    `en_high` or `en_low` if it wants to be enabled."""
    max_rpm: Annotated[float, Field(ge=0)] = 0.0
    """About how many revolutions per minute it makes at full power. Without it, it has no speeds,
    only powers."""
    dir_flip: bool = False
    """Whether forward is the other way round."""
    pwm_freq: Annotated[int, Field(ge=0)] = 0
    """The frequency of the PWM in hertz; 0 is what the board usually makes."""
    min_power_pct: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The power at which it begins to turn, from 0 to 1: any that is less, but 0, is raised to
    it."""
    max_power_pct: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The power that it may get at most, from 0 to 1."""
    encoder: Annotated[str, Needs("rdk:component:encoder")] = ""
    """The encoder on its shaft, by which it knows its position. Without one, `go_for` is timed by
    `max_rpm`."""
    ticks_per_rotation: Annotated[int, Field(ge=0)] = 0
    """How many ticks of the encoder are one revolution."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if bool(self.encoder) != bool(self.ticks_per_rotation):
            raise fault(codes.HALF_SET, '"encoder" and "ticks_per_rotation" belong together')
        if self.min_power_pct > self.max_power_pct:
            raise fault(
                codes.BAD_VALUE,
                f'"min_power_pct" {self.min_power_pct:g} is more than "max_power_pct" '
                f"{self.max_power_pct:g}",
            )
        return self
