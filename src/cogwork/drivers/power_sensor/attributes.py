"""What the power sensors read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes, Needs


class FakePowerSensorAttributes(Attributes):
    voltage: float = 12.0
    """How many volts it measures."""
    current: float = 0.5
    """How many amperes flow, whatever else is powered."""
    is_ac: bool = False
    """Whether the current alternates."""
    motor: Annotated[str, Field(min_length=1), Needs("rdk:component:motor")] | None = None
    """A motor that draws more while it is powered."""
    motor_current: Annotated[float, Field(ge=0)] = 2.0
    """How many amperes the motor draws at full power."""
