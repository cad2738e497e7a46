"""Attributes of the navigation models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.schema.fields import Attributes, Dependency, UnsetIfZero

Positive = Annotated[float, Field(gt=0)]
OptionalSpeed = Annotated[float, Field(ge=0), UnsetIfZero()]
Latitude = Annotated[float, Field(ge=-80, le=80)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
BaseName = Annotated[str, Field(min_length=1), Dependency("rdk:component:base")]
MovementSensorName = Annotated[
    str, Field(min_length=1), Dependency("rdk:component:movement_sensor")
]


class MapOriginAttributes(Attributes):
    """The point on the Earth where the map has its origin."""

    latitude: Latitude
    """Degrees north of the equator."""
    longitude: Longitude
    """Degrees east of Greenwich."""


class BuiltinNavigationAttributes(Attributes):
    """Drives any base to waypoints, with the positions of any movement sensor."""

    base: BaseName
    """Base to drive. It must turn in place."""
    movement_sensor: MovementSensorName
    """Movement sensor at the center of the base, which reports a position and a compass heading."""
    map_type: Annotated[Literal["GPS", "gps", "local"], UnsetIfZero()] = "GPS"
    """Type of positions: `GPS`, coordinates on the globe; `local`, poses in millimeters, with x to
    the east and y to the north of `origin`."""
    origin: MapOriginAttributes | None = None
    """Origin of the map: `latitude` and `longitude` in degrees, within some kilometers of where the
    machine drives. Defaults to the position of the machine when the service is built."""
    meters_per_sec: OptionalSpeed = 0.3
    """Default speed, unless a zone or a call sets another."""
    degs_per_sec: OptionalSpeed = 20.0
    """Angular speed in degrees per second."""
    plan_deviation_m: Annotated[float, Field(ge=0.01), UnsetIfZero()] = 2.6
    """Distance from its path, in meters, at which the machine stops and plans another path. Paths
    keep this distance, plus the radius of the machine, from keepout zones. A goal counts as reached
    within half of this distance. Set the distance larger than the error of the measured
    positions."""
    position_polling_frequency_hz: Annotated[float, Field(ge=0, le=100), UnsetIfZero()] = 1.0
    """Frequency of position checks while the base moves. After each turn and each straight leg, the
    base waits for one period. Do not set it higher than the rate of the sensor."""
    footprint_length_m: Positive = 0.6
    """Length of the machine."""
    footprint_width_m: Positive = 0.4
    """Width of the machine."""


class FakeNavigationAttributes(Attributes):
    """A navigation service without hardware whose vehicle moves in straight lines."""

    map_type: Literal["local", "gps"] = "local"
    """Type of positions: `local`, poses on a map in millimeters; `gps`, coordinates on the
    globe."""
    latitude: Latitude = 40.7
    """Start latitude in degrees, if `map_type` is `gps`."""
    longitude: Longitude = -73.98
    """Start longitude in degrees, if `map_type` is `gps`."""
    linear_m_per_sec: Positive = 0.5
    """Default speed, unless a zone or a call sets another."""
    footprint_length_m: Positive = 0.6
    """Length of the machine."""
    footprint_width_m: Positive = 0.4
    """Width of the machine."""
    localized: bool = True
    """Whether the machine knows its position. If not, it does not move."""
