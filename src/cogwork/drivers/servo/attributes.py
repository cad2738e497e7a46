"""Attributes of the servo models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, fault

_Angle = Annotated[int, Field(ge=0, lt=2**32)]


class FakeServoAttributes(Attributes):
    degrees_per_second: Annotated[float, Field(gt=0)] = 180.0
    """Speed of rotation."""
    minimum: _Angle = 0
    """Smallest angle in degrees, which is also the initial one."""
    maximum: _Angle = 180
    """Largest angle in degrees."""

    @model_validator(mode="after")
    def _check_limits(self) -> FakeServoAttributes:
        if self.minimum > self.maximum:
            raise fault(
                codes.BAD_VALUE,
                f'"minimum" {self.minimum} is greater than "maximum" {self.maximum}',
            )
        return self
