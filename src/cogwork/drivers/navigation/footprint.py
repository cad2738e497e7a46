"""The footprint of a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Footprint:
    """A rectangle; lengths are in meters."""

    length: float
    width: float

    @property
    def radius(self) -> float:
        """The radius of the circle around the rectangle."""
        return math.hypot(self.length, self.width) / 2
