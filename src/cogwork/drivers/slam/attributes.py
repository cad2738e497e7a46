"""What the SLAM services read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, fault

Side = Annotated[float, Field(ge=1000, le=100_000)]
_MOST_POINTS = 1_000_000


class FakeSlamAttributes(Attributes):
    room_width_mm: Side = 6000.0
    """How far the room reaches along x. Its middle is the origin of the map."""
    room_depth_mm: Side = 4000.0
    """How far the room reaches along y."""
    room_height_mm: Annotated[float, Field(ge=10, le=10_000)] = 2500.0
    """How high its walls are."""
    resolution_mm: Annotated[float, Field(ge=5, le=1000)] = 50.0
    """How far apart the points of the map are."""
    speed_mm_per_sec: Annotated[float, Field(ge=0, le=100_000)] = 300.0
    """How fast the position moves round the pillar in the middle of the room."""
    mapping_mode: Literal["create_new_map", "localize_only", "update_existing_map"] = (
        "localize_only"
    )
    """What it says it does with its map, which never changes."""

    @model_validator(mode="after")
    def _can_be_carried(self) -> Self:
        around = 2 * (self.room_width_mm + self.room_depth_mm) * 1.25
        points = around * self.room_height_mm / self.resolution_mm**2
        if points > _MOST_POINTS:
            raise fault(
                codes.BAD_VALUE,
                f'"resolution_mm" must be larger: the map would have {points:.0f} points, and '
                f"has {_MOST_POINTS} at most",
            )
        return self
