"""What the navigation services read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.fields import Attributes

Metres = Annotated[float, Field(gt=0)]


class FakeNavigationAttributes(Attributes):
    map_type: Literal["local", "gps"] = "local"
    """Whether positions are poses on a map, in millimetres, or places on the globe."""
    latitude: Annotated[float, Field(ge=-80, le=80)] = 40.7
    """Where it starts, in degrees, if `map_type` is `gps`."""
    longitude: Annotated[float, Field(ge=-180, le=180)] = -73.98
    """Where it starts, in degrees, if `map_type` is `gps`."""
    linear_m_per_sec: Metres = 0.5
    """How fast it goes, where no zone and no call says otherwise."""
    footprint_length_m: Metres = 0.6
    """How long it is."""
    footprint_width_m: Metres = 0.4
    """How wide it is."""
    localized: bool = True
    """Whether it knows where it is. Without that it goes nowhere."""
