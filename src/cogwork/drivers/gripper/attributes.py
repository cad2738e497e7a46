"""Attributes of the gripper models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, fault


class FakeGripperAttributes(Attributes):
    """A gripper without hardware whose fingers move in real time and may hold an object."""

    opening_mm: Annotated[float, Field(gt=0)] = 80.0
    """Distance between the fingers when the gripper is open, which is the initial state."""
    speed_mm_per_sec: Annotated[float, Field(gt=0)] = 100.0
    """Speed of the fingers."""
    object_width_mm: Annotated[float, Field(gt=0)] | None = None
    """Width of an object that stops the fingers when they close. By default there is no object: the
    fingers close completely and hold nothing."""

    @model_validator(mode="after")
    def _check_object_fits(self) -> FakeGripperAttributes:
        if self.object_width_mm is not None and self.object_width_mm > self.opening_mm:
            raise fault(
                codes.BAD_VALUE,
                f'"object_width_mm" is {self.object_width_mm:g}, but the fingers are only '
                f'{self.opening_mm:g} mm apart: make "opening_mm" larger',
            )
        return self
