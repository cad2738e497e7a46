"""Attributes of the gantry models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.schema.fields import Attributes

_Length = Annotated[float, Field(gt=0)]


class FakeGantryAttributes(Attributes):
    """A gantry without hardware that moves in real time."""

    lengths_mm: Annotated[list[_Length], Field(min_length=1, max_length=3)] = [1000.0]
    """Lengths of the axes in millimeters: the first along x, the second along y, the third along
    z."""
    speed_mm_per_sec: Annotated[float, Field(gt=0)] = 250.0
    """Maximum speed of an axis, which is also the default speed."""
