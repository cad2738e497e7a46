"""What the movement sensors read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault

Base = Annotated[str, Field(min_length=1), Needs("rdk:component:base")]
Motors = Annotated[
    list[Annotated[str, Field(min_length=1), Needs("rdk:component:motor")]], Field(min_length=1)
]


class GeoPointAttributes(Attributes):
    """A point on the Earth."""

    latitude: Annotated[float, Field(ge=-90, le=90)] = 0.0
    """Degrees north of the equator."""
    longitude: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Degrees east of Greenwich."""


class VectorAttributes(Attributes):
    x: float = 0.0
    """To the right."""
    y: float = 0.0
    """Forward."""
    z: float = 0.0
    """Up."""


class FakeMovementSensorAttributes(Attributes):
    base: Base | None = None
    """A fake base to move with. Without one the sensor stays where it is."""
    origin: GeoPointAttributes = GeoPointAttributes(latitude=40.7, longitude=-73.98)
    """Where it is at first: its `latitude` and `longitude` in degrees."""
    altitude: float = 0.0
    """How many metres above the sea it is."""
    compass_heading: Annotated[float, Field(ge=0, lt=360)] = 0.0
    """Where it faces at first: degrees clockwise from north."""
    linear_velocity: VectorAttributes = VectorAttributes()
    """What it measures without a base, in metres per second: `x` to the right, `y` forward, `z`
    up."""
    angular_velocity: VectorAttributes = VectorAttributes()
    """What it measures without a base, in degrees per second about these axes."""
    linear_acceleration: VectorAttributes = VectorAttributes()
    """What it measures without a base, in metres per second squared."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        still = {"linear_velocity", "angular_velocity", "linear_acceleration"}
        given = sorted(still & self.model_fields_set)
        if self.base is not None and given:
            raise fault(codes.BAD_VALUE, f'the base says how it moves: leave "{given[0]}" out')
        return self


class WheeledOdometryAttributes(Attributes):
    left_motors: Motors
    """The motors of the left side of the base. All of them report their positions."""
    right_motors: Motors
    """The motors of the right side of the base."""
    base: Base
    """The base, which knows how wide it is and how large its wheels are."""
    time_interval_msec: Annotated[float, Field(ge=10)] = 500.0
    """How many milliseconds pass between two looks at the motors. The base is taken to drive along
    an arc between them."""
    max_rpm: Annotated[float, Field(gt=0)] = 600.0
    """About how many revolutions per minute a wheel makes at most. A motor that is suddenly back at
    zero, and cannot have turned so far, had its position reset, which does not move the base. The
    closer the number is, the smaller are the resets that are told from moves."""
    origin: GeoPointAttributes = GeoPointAttributes()
    """Where it is at first: its `latitude` and `longitude` in degrees."""
    compass_heading: Annotated[float, Field(ge=0, lt=360)] = 0.0
    """Where it faces at first: degrees clockwise from north."""
