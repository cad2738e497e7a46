"""What the motion services read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes


class BuiltinMotionAttributes(Attributes):
    linear_m_per_sec: Annotated[float, Field(gt=0)] = 0.3
    """How fast a base drives, unless a call says otherwise."""
    angular_degs_per_sec: Annotated[float, Field(gt=0)] = 60.0
    """How fast a base turns, unless a call says otherwise."""
