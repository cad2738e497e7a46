"""Attributes of the movement sensor models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, UnsetIfZero, fault

BaseName = Annotated[str, Field(min_length=1), Dependency("rdk:component:base")]
MotorNames = Annotated[
    list[Annotated[str, Field(min_length=1), Dependency("rdk:component:motor")]],
    Field(min_length=1),
]


class GeoPointAttributes(Attributes):
    """A point on the Earth."""

    latitude: Annotated[float, Field(ge=-90, le=90)] = 0.0
    """Degrees north of the equator."""
    longitude: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Degrees east of Greenwich."""


class VectorAttributes(Attributes):
    x: float = 0.0
    """Component to the right."""
    y: float = 0.0
    """Component forward."""
    z: float = 0.0
    """Component up."""


class FakeMovementSensorAttributes(Attributes):
    """A movement sensor without hardware that follows a fake base, or stays in place."""

    base: BaseName | None = None
    """Fake base to move with. Without one the sensor stays in place."""
    origin: GeoPointAttributes = GeoPointAttributes(latitude=40.7, longitude=-73.98)
    """Initial position: `latitude` and `longitude` in degrees."""
    altitude: float = 0.0
    """Altitude above sea level in meters."""
    compass_heading: Annotated[float, Field(ge=0, lt=360)] = 0.0
    """Initial heading: degrees clockwise from north."""
    linear_velocity: VectorAttributes = VectorAttributes()
    """Reported velocity without a base, in meters per second: `x` to the right, `y` forward, `z`
    up."""
    angular_velocity: VectorAttributes = VectorAttributes()
    """Reported angular velocity without a base, in degrees per second about the axes `x`, `y` and
    `z`."""
    linear_acceleration: VectorAttributes = VectorAttributes()
    """Reported acceleration without a base, in meters per second squared."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        static = {"linear_velocity", "angular_velocity", "linear_acceleration"}
        given = sorted(static & self.model_fields_set)
        if self.base is not None and given:
            raise fault(codes.BAD_VALUE, f'remove "{given[0]}": the base determines the motion')
        return self


class WheeledOdometryAttributes(Attributes):
    """Computes the position of a base from the turns of its motors."""

    left_motors: MotorNames
    """Motors on the left side of the base. All of them must report their positions."""
    right_motors: MotorNames
    """Motors on the right side of the base."""
    base: BaseName
    """Base that the motors drive. It must report its width and its wheel circumference."""
    time_interval_msec: Annotated[float, Field(ge=10), UnsetIfZero()] = 500.0
    """Milliseconds between two readings of the motors. The base is assumed to drive along an arc
    between them."""
    max_rpm: Annotated[float, Field(gt=0)] = 600.0
    """Approximate maximum revolutions per minute of a wheel. It is used to detect resets: if the
    position of a motor drops to zero faster than the wheel can turn, the motor was reset and the
    base did not move. The closer the value, the smaller the resets that are detected."""
    origin: GeoPointAttributes = GeoPointAttributes()
    """Initial position: `latitude` and `longitude` in degrees."""
    compass_heading: Annotated[float, Field(ge=0, lt=360)] = 0.0
    """Initial heading: degrees clockwise from north."""
