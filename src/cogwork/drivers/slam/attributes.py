"""What the SLAM services read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault

Side = Annotated[float, Field(ge=1000, le=100_000)]
_MOST_POINTS = 1_000_000


class FakeSlamAttributes(Attributes):
    base: Annotated[str, Field(min_length=1), Needs("rdk:component:base")] | None = None
    """A fake base to follow. It begins between the pillar and the corner of the room with the
    largest x and the smallest y, and looks along y. Without one the position moves by itself."""
    room_width_mm: Side = 6000.0
    """How far the room reaches along x. Its middle is the origin of the map."""
    room_depth_mm: Side = 4000.0
    """How far the room reaches along y."""
    room_height_mm: Annotated[float, Field(ge=10, le=10_000)] = 2500.0
    """How high its walls are."""
    resolution_mm: Annotated[float, Field(ge=5, le=1000)] = 50.0
    """How far apart the points of the map are."""
    speed_mm_per_sec: Annotated[float, Field(ge=0, le=100_000)] = 300.0
    """How fast the position moves round the pillar in the middle of the room, without a base."""
    mapping_mode: Literal["create_new_map", "localize_only", "update_existing_map"] = (
        "localize_only"
    )
    """What it says it does with its map, which never changes."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.base is not None and "speed_mm_per_sec" in self.model_fields_set:
            raise fault(codes.BAD_VALUE, 'the base says how it moves: leave "speed_mm_per_sec" out')
        return self

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
