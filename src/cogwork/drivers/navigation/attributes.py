"""Attributes of the navigation models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.fields import Attributes

Meters = Annotated[float, Field(gt=0)]


class FakeNavigationAttributes(Attributes):
    map_type: Literal["local", "gps"] = "local"
    """Type of positions: `local`, poses on a map in millimeters; `gps`, coordinates on the
    globe."""
    latitude: Annotated[float, Field(ge=-80, le=80)] = 40.7
    """Start latitude in degrees, if `map_type` is `gps`."""
    longitude: Annotated[float, Field(ge=-180, le=180)] = -73.98
    """Start longitude in degrees, if `map_type` is `gps`."""
    linear_m_per_sec: Meters = 0.5
    """Default speed, unless a zone or a call sets another."""
    footprint_length_m: Meters = 0.6
    """Length of the machine."""
    footprint_width_m: Meters = 0.4
    """Width of the machine."""
    localized: bool = True
    """Whether the machine knows its position. If not, it does not move."""
