"""What the gantries read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes

_Length = Annotated[float, Field(gt=0)]


class FakeGantryAttributes(Attributes):
    lengths_mm: Annotated[list[_Length], Field(min_length=1, max_length=3)] = [1000.0]
    """How long its axes are, in millimetres: the first lies along x, the second along y, the third
    along z."""
    speed_mm_per_sec: Annotated[float, Field(gt=0)] = 250.0
    """How fast an axis slides at most; and how fast it does, where a call says no speed."""
