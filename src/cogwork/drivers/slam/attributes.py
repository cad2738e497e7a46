"""Attributes of the SLAM models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, fault

Side = Annotated[float, Field(ge=1000, le=100_000)]
_MAX_POINTS = 1_000_000


class FakeSlamAttributes(Attributes):
    """A SLAM service without hardware, with the map of a room."""

    base: Annotated[str, Field(min_length=1), Dependency("rdk:component:base")] | None = None
    """Fake base to follow. It starts between the pillar and the corner of the room with the largest
    x and the smallest y, facing along y. Without a base, the position circles the pillar."""
    room_width_mm: Side = 6000.0
    """Extent of the room along x. The origin of the map is the center of the room."""
    room_depth_mm: Side = 4000.0
    """Extent of the room along y."""
    room_height_mm: Annotated[float, Field(ge=10, le=10_000)] = 2500.0
    """Height of the walls."""
    resolution_mm: Annotated[float, Field(ge=5, le=1000)] = 50.0
    """Distance between the points of the map."""
    speed_mm_per_sec: Annotated[float, Field(ge=0, le=100_000)] = 300.0
    """Speed at which the position circles the pillar in the center of the room, without a base."""
    mapping_mode: Literal["create_new_map", "localize_only", "update_existing_map"] = (
        "localize_only"
    )
    """Mapping mode to report. The map itself never changes."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.base is not None and "speed_mm_per_sec" in self.model_fields_set:
            raise fault(
                codes.BAD_VALUE, 'remove "speed_mm_per_sec": it has no effect if "base" is set'
            )
        return self

    @model_validator(mode="after")
    def _check_map_size(self) -> Self:
        perimeter = 2 * (self.room_width_mm + self.room_depth_mm) * 1.25
        points = perimeter * self.room_height_mm / self.resolution_mm**2
        if points > _MAX_POINTS:
            raise fault(
                codes.BAD_VALUE,
                f'"resolution_mm" must be larger: the map would have {points:.0f} points, and '
                f"the maximum is {_MAX_POINTS}",
            )
        return self
