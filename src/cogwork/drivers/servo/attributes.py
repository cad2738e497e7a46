"""What the servos read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, fault

_Angle = Annotated[int, Field(ge=0, lt=2**32)]


class FakeServoAttributes(Attributes):
    degrees_per_second: Annotated[float, Field(gt=0)] = 180.0
    """How fast it turns."""
    minimum: _Angle = 0
    """The smallest angle that it goes to, in degrees; this is where it is at first."""
    maximum: _Angle = 180
    """The largest angle that it goes to, in degrees."""

    @model_validator(mode="after")
    def _in_order(self) -> FakeServoAttributes:
        if self.minimum > self.maximum:
            raise fault(
                codes.BAD_VALUE,
                f'"minimum" is {self.minimum}, more than "maximum", which is {self.maximum}',
            )
        return self
