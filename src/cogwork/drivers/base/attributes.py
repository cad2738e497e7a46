"""What the bases read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault

Positive = Annotated[float, Field(gt=0)]
Motors = Annotated[
    list[Annotated[str, Field(min_length=1), Needs("rdk:component:motor")]], Field(min_length=1)
]


class FakeBaseAttributes(Attributes):
    width_mm: Positive = 600.0
    """How far apart its wheels are."""
    length_mm: Positive = 600.0
    """How long the box is that it fills."""
    height_mm: Positive = 300.0
    """How high the box is that it fills."""
    turning_radius_mm: Annotated[float, Field(ge=0)] = 0.0
    """How narrow it says that it turns; 0 is on the spot."""
    wheel_circumference_mm: Positive = 300.0
    """How far it says that one turn of a wheel takes it."""
    max_mm_per_sec: Positive = 1000.0
    """How fast it drives at full power."""
    max_degs_per_sec: Positive = 180.0
    """How fast it turns at full power."""


class WheeledBaseAttributes(Attributes):
    left: Motors
    """The motors of its left side. Forward is the direction in which they all turn forward."""
    right: Motors
    """The motors of its right side."""
    width_mm: Positive
    """How far apart the middles of its left and right wheels are."""
    wheel_circumference_mm: Positive
    """How far one turn of a wheel takes it."""
    spin_slip_factor: Positive = 1.0
    """How much farther the wheels have to turn than they would if they did not slip, whenever the
    base turns; 1.2 is a fifth more. Measure it: let the base spin, and divide the angle that you
    asked for by the one that it made."""

    @model_validator(mode="after")
    def _each_motor_once(self) -> Self:
        motors = [*self.left, *self.right]
        twice = next((motor for motor in motors if motors.count(motor) > 1), None)
        if twice is not None:
            raise fault(codes.BAD_VALUE, f'motor "{twice}" can only be in one place')
        return self
