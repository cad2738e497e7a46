"""Attributes of the pose tracker models."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Duration, fault

Period = Annotated[Duration, Field(ge=0.01, le=86_400)]


class PointAttributes(Attributes):
    x: float = 0.0
    """Millimeters along x."""
    y: float = 0.0
    """Millimeters along y."""
    z: float = 0.0
    """Millimeters along z."""


class BodyAttributes(Attributes):
    name: Annotated[str, Field(min_length=1)]
    """Name that clients use."""


class CircleAttributes(BodyAttributes):
    path: Literal["circle"]
    """Counterclockwise motion on a circle, facing forward."""
    center: PointAttributes = Field(default_factory=PointAttributes)
    """Center of the circle: `x`, `y`, `z`, each 0 by default."""
    radius_mm: Annotated[float, Field(gt=0)] = 200.0
    """Radius of the circle."""
    period: Period = 10.0
    """Duration of one revolution."""


class LineAttributes(BodyAttributes):
    path: Literal["line"]
    """Motion along a line and back."""
    start: PointAttributes = Field(default_factory=PointAttributes)
    """Start point: `x`, `y`, `z`, each 0 by default."""
    end: PointAttributes = Field(default_factory=lambda: PointAttributes(x=500.0))
    """Turning point; 500 mm along x by default."""
    period: Period = 10.0
    """Duration of one round trip."""


class StillAttributes(BodyAttributes):
    path: Literal["still"]
    """No motion."""
    at: PointAttributes = Field(default_factory=PointAttributes)
    """Position: `x`, `y`, `z`, each 0 by default."""


TrackedBody = Annotated[
    CircleAttributes | LineAttributes | StillAttributes, Field(discriminator="path")
]


def _check_unique_names(bodies: list[TrackedBody]) -> list[TrackedBody]:
    name, times = Counter(body.name for body in bodies).most_common(1)[0] if bodies else ("", 0)
    if times > 1:
        raise fault(
            codes.BAD_VALUE, f'the name "{name}" is used {times} times; names must be unique'
        )
    return bodies


def _default_bodies() -> list[TrackedBody]:
    return [
        CircleAttributes(name="runner", path="circle"),
        LineAttributes(name="shuttle", path="line"),
    ]


class FakePoseTrackerAttributes(Attributes):
    """A pose tracker without hardware, of bodies that move by themselves."""

    bodies: Annotated[list[TrackedBody], AfterValidator(_check_unique_names)] = Field(
        default_factory=_default_bodies
    )
    """Bodies to track, such as `{"name": "ball", "path": "circle", "radius_mm": 300, "period":
    "5s"}`. `path` is `circle`, `line` or `still`. By default two bodies: `runner` and `shuttle`."""
    reference_frame: Annotated[str, Field(min_length=1)] = "world"
    """Frame of the reported poses."""
