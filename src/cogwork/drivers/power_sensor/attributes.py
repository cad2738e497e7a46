"""Attributes of the power sensor models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.schema.fields import Attributes, Dependency


class FakePowerSensorAttributes(Attributes):
    """A power sensor without hardware that measures what is configured, or a motor."""

    voltage: float = 12.0
    """Measured voltage in volts."""
    current: float = 0.5
    """Current in amperes, not counting the motor."""
    is_ac: bool = False
    """Whether to report alternating current (AC)."""
    motor: Annotated[str, Field(min_length=1), Dependency("rdk:component:motor")] | None = None
    """Motor that draws additional current while it is powered."""
    motor_current: Annotated[float, Field(ge=0)] = 2.0
    """Amperes that the motor draws at full power."""
