"""What the grippers read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, fault


class FakeGripperAttributes(Attributes):
    opening_mm: Annotated[float, Field(gt=0)] = 80.0
    """How far apart its fingers are when it is open, which it is at first."""
    speed_mm_per_sec: Annotated[float, Field(gt=0)] = 100.0
    """How fast its fingers come together, or go apart."""
    object_width_mm: Annotated[float, Field(gt=0)] | None = None
    """How wide the thing is that lies between its fingers: they meet it when they close. Without
    one they close all the way, and hold nothing."""

    @model_validator(mode="after")
    def _fits(self) -> FakeGripperAttributes:
        if self.object_width_mm is not None and self.object_width_mm > self.opening_mm:
            raise fault(
                codes.BAD_VALUE,
                f'"object_width_mm" is {self.object_width_mm:g}, and the fingers are only '
                f'{self.opening_mm:g} mm apart: make "opening_mm" larger',
            )
        return self
