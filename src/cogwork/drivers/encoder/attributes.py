"""Attributes of the encoder models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault


class FakeEncoderAttributes(Attributes):
    motor: Annotated[str, Field(min_length=1), Needs("rdk:component:motor")] | None = None
    """Motor to follow, which must report its position."""
    ticks_per_revolution: Annotated[float, Field(gt=0)] = 360.0
    """Ticks per revolution of the shaft."""
    rate: float = 0.0
    """Ticks per second without a motor. A negative rate counts down."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.motor is not None and self.rate:
            raise fault(codes.BAD_VALUE, 'remove "rate" or "motor": the motor determines the rate')
        return self
