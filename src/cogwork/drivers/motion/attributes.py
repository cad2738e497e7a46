"""Attributes of the motion service models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.schema.fields import Attributes


class BuiltinMotionAttributes(Attributes):
    """Moves bases, arms and gantries in straight lines."""

    linear_m_per_sec: Annotated[float, Field(gt=0)] = 0.3
    """Default speed of a base."""
    angular_degs_per_sec: Annotated[float, Field(gt=0)] = 60.0
    """Default angular speed of a base."""
