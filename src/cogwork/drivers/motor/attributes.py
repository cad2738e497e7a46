"""Attributes of the motor models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import (
    Attributes,
    Dependency,
    IgnoredValue,
    UnsetIfZero,
    fault,
)


class FakeMotorAttributes(Attributes):
    """A motor without hardware that turns in real time."""

    max_rpm: Annotated[float, Field(ge=0), UnsetIfZero()] = 100.0
    """Revolutions per minute at full power."""
    position_reporting: bool = True
    """Whether the motor reports its position, as a motor with an encoder does."""


class GpioMotorPins(Attributes):
    """Board pins that the motor driver is connected to: `dir` and `pwm`, or `a` and `b`, or `a`,
    `b` and `pwm`."""

    a: str = ""
    """High to turn forward. Without `pwm`, this pin also carries the PWM signal."""
    b: str = ""
    """High to turn backward. Without `pwm`, this pin also carries the PWM signal."""
    dir: str = ""
    """High to turn forward, low to turn backward."""
    pwm: str = ""
    """PWM signal, whose duty cycle is the power."""
    en_high: str = ""
    """High while the motor is driven."""
    en_low: str = ""
    """Low while the motor is driven."""

    @property
    def names(self) -> list[str]:
        pins = (self.a, self.b, self.dir, self.pwm, self.en_high, self.en_low)
        return [name for name in pins if name]

    @property
    def pwm_pins(self) -> list[str]:
        """The pins that carry a PWM signal."""
        return [self.pwm] if self.pwm else [self.a, self.b]

    @model_validator(mode="after")
    def _check_wiring(self) -> Self:
        given = {key for key in ("a", "b", "dir", "pwm") if getattr(self, key)}
        if given not in ({"dir", "pwm"}, {"a", "b"}, {"a", "b", "pwm"}):
            raise fault(
                codes.BAD_VALUE,
                'set the pins "dir" and "pwm", "a" and "b", or "a", "b" and "pwm" '
                f"(configured: {' and '.join(sorted(given)) or 'none'})",
            )
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise fault(codes.BAD_VALUE, f'pin "{twice[0]}" is used twice')
        return self


class GpioMotorAttributes(Attributes):
    """A DC motor on a motor driver that is connected to pins of a board."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the motor driver is connected to."""
    pins: GpioMotorPins
    """Pins that the motor driver is connected to: `dir` and `pwm`, or `a` and `b`, or `a`, `b` and
    `pwm`; and `en_high` or `en_low` if it has an enable pin."""
    max_rpm: Annotated[float, Field(ge=0)] = 0.0
    """Approximate revolutions per minute at full power. Without this value, only powers can be set,
    not speeds."""
    dir_flip: bool = False
    """Whether forward and backward are swapped."""
    pwm_freq: Annotated[int, Field(ge=0)] = 0
    """PWM frequency in hertz; 0 is the default of the board."""
    min_power_pct: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Power from 0 to 1 at which the motor starts to turn. Lower powers, except 0, are raised to
    it."""
    max_power_pct: Annotated[float, Field(ge=0, le=1), UnsetIfZero()] = 1.0
    """Maximum power, from 0 to 1."""
    encoder: Annotated[str, Dependency("rdk:component:encoder")] = ""
    """Encoder on the shaft, which measures the position if `ticks_per_rotation` is set. Without it,
    `go_for` runs for the time that it computes from `max_rpm`."""
    ticks_per_rotation: Annotated[int, Field(ge=0)] = 0
    """Encoder ticks per revolution. With 0, which is the default, the position is unknown, and an
    encoder with one signal only learns the direction from the motor."""

    def ignored_values(self, written: Mapping[str, JsonValue]) -> tuple[IgnoredValue, ...]:
        found = []
        if written.get("max_power_pct") == 0:
            found.append(
                IgnoredValue(
                    ("max_power_pct",),
                    '"max_power_pct" 0 counts as not set, so the maximum is full power',
                    "set the maximum power, from 0 to 1",
                    is_removable=True,
                )
            )
        if self.encoder and not self.ticks_per_rotation:
            found.append(
                IgnoredValue(
                    ("encoder",),
                    'the motor does not know its position, because "ticks_per_rotation" is not '
                    "set: it turns for the time that it computes from its speed",
                    'set "ticks_per_rotation" to the ticks of the encoder per revolution',
                )
            )
        if written.get("ticks_per_rotation") and not self.encoder:
            found.append(
                IgnoredValue(
                    ("ticks_per_rotation",),
                    '"ticks_per_rotation" has no effect without an encoder',
                    'name the encoder of the motor as "encoder"',
                    is_removable=True,
                )
            )
        return tuple(found)

    @model_validator(mode="before")
    @classmethod
    def _drop_unused_ticks(cls, data: Any) -> Any:
        """Drop the ticks if there is no encoder, so that the same runs without them."""
        if isinstance(data, dict) and not data.get("encoder"):
            return {key: value for key, value in data.items() if key != "ticks_per_rotation"}
        return data

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.min_power_pct > self.max_power_pct:
            raise fault(
                codes.BAD_VALUE,
                f'"min_power_pct" {self.min_power_pct:g} is more than "max_power_pct" '
                f"{self.max_power_pct:g}",
            )
        return self
