"""What the motors read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes


class FakeMotorAttributes(Attributes):
    max_rpm: Annotated[float, Field(gt=0)] = 100.0
    """How many revolutions per minute it makes at full power."""
    position_reporting: bool = True
    """Whether it knows its position, as a motor with an encoder does."""
