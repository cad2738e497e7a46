"""Attributes of the base models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, UnsetIfZero, fault

Positive = Annotated[float, Field(gt=0)]
MotorNames = Annotated[
    list[Annotated[str, Field(min_length=1), Dependency("rdk:component:motor")]],
    Field(min_length=1),
]


class FakeBaseAttributes(Attributes):
    """A base without hardware that drives in real time."""

    width_mm: Positive = 600.0
    """Distance between the wheels."""
    length_mm: Positive = 600.0
    """Length of the base's bounding box."""
    height_mm: Positive = 300.0
    """Height of the base's bounding box."""
    turning_radius_mm: Annotated[float, Field(ge=0)] = 0.0
    """Turning radius that the base reports; 0 means that it can turn in place."""
    wheel_circumference_mm: Positive = 300.0
    """Wheel circumference to report."""
    max_mm_per_sec: Positive = 1000.0
    """Speed at full power."""
    max_degs_per_sec: Positive = 180.0
    """Angular speed at full power."""


class WheeledBaseAttributes(Attributes):
    """A base with motors on its left and right side (differential drive)."""

    left: MotorNames
    """Motors on the left side. The base moves forward when all motors turn forward."""
    right: MotorNames
    """Motors on the right side."""
    width_mm: Positive
    """Distance between the centers of the left and right wheels."""
    wheel_circumference_mm: Positive
    """Distance per revolution of a wheel."""
    spin_slip_factor: Annotated[float, Field(ge=0), UnsetIfZero()] = 1.0
    """Slip of turns: the factor by which the wheels must turn farther than without slip, such as
    1.2 for a fifth more. To measure it, spin the base and divide the requested angle by the actual
    angle."""

    @model_validator(mode="after")
    def _check_motors_unique(self) -> Self:
        motors = [*self.left, *self.right]
        duplicate = next((motor for motor in motors if motors.count(motor) > 1), None)
        if duplicate is not None:
            raise fault(codes.BAD_VALUE, f'motor "{duplicate}" is used more than once')
        return self
