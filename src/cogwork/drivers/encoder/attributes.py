"""What the encoders read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault


class FakeEncoderAttributes(Attributes):
    motor: Annotated[str, Field(min_length=1), Needs("rdk:component:motor")] | None = None
    """The motor whose turns it counts; any that reports its position."""
    ticks_per_revolution: Annotated[float, Field(gt=0)] = 360.0
    """How many ticks it counts while its shaft turns once."""
    rate: float = 0.0
    """How many ticks it counts each second, without a motor. Negative ones count down."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.motor is not None and self.rate:
            raise fault(
                codes.BAD_VALUE, 'the motor says how fast it turns: leave "rate" or "motor" out'
            )
        return self
