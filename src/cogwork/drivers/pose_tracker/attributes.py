"""What the pose trackers read from their configuration."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, fault

Period = Annotated[Duration, Field(ge=0.01, le=86_400)]


class Place(Attributes):
    x: float = 0.0
    """Millimetres along x."""
    y: float = 0.0
    """Millimetres along y."""
    z: float = 0.0
    """Millimetres along z."""


class Body(Attributes):
    name: Annotated[str, Field(min_length=1)]
    """What calls ask for."""


class CircleAttributes(Body):
    path: Literal["circle"]
    """Goes round, as the hand of a clock does not, and looks ahead."""
    center: Place = Field(default_factory=Place)
    """What it goes round: `x`, `y`, `z`, each 0 when left out."""
    radius_mm: Annotated[float, Field(gt=0)] = 200.0
    """How far from there."""
    period: Period = 10.0
    """How long it takes to go round once."""


class LineAttributes(Body):
    path: Literal["line"]
    """Goes there and back."""
    start: Place = Field(default_factory=Place)
    """Where it begins: `x`, `y`, `z`, each 0 when left out."""
    end: Place = Field(default_factory=lambda: Place(x=500.0))
    """Where it turns back; 500 mm along x when left out."""
    period: Period = 10.0
    """How long it takes there and back."""


class StillAttributes(Body):
    path: Literal["still"]
    """Stays where it is."""
    at: Place = Field(default_factory=Place)
    """Where that is: `x`, `y`, `z`, each 0 when left out."""


Moving = Annotated[CircleAttributes | LineAttributes | StillAttributes, Field(discriminator="path")]


def _distinct(bodies: list[Moving]) -> list[Moving]:
    name, times = Counter(body.name for body in bodies).most_common(1)[0] if bodies else ("", 0)
    if times > 1:
        raise fault(codes.BAD_VALUE, f'"{name}" is the name of {times} of them')
    return bodies


def _usual() -> list[Moving]:
    return [
        CircleAttributes(name="runner", path="circle"),
        LineAttributes(name="shuttle", path="line"),
    ]


class FakePoseTrackerAttributes(Attributes):
    bodies: Annotated[list[Moving], AfterValidator(_distinct)] = Field(default_factory=_usual)
    """What it tracks, such as `{"name": "ball", "path": "circle", "radius_mm": 300, "period":
    "5s"}`, `line` or `still`. Two bodies when left out: `runner` and `shuttle`."""
    reference_frame: Annotated[str, Field(min_length=1)] = "world"
    """The frame in which their poses are told."""
