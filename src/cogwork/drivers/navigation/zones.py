"""Zones: areas to keep out of, and areas to be slow in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viam.proto.service.navigation import Zone as ZoneMessage

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.navigation.chart import Chart, number
from cogwork.drivers.navigation.outline import Outline
from cogwork.resource.structs import to_struct

KEEPOUT = "keepout"
SPEED_LIMIT = "speed_limit"
MOST_CORNERS = 64

_FIELDS = {
    "circle": {"type", "center", "radius"},
    "box": {"type", "center", "size", "theta"},
    "polygon": {"type", "points"},
}
_SMALLEST = 1e-6
"""Square metres."""


@dataclass(frozen=True, slots=True)
class Zone:
    message: ZoneMessage
    geometry: Mapping[str, Any]
    outline: Outline
    kept: Outline
    """With the room around it that a machine takes up which keeps out of it."""

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def type(self) -> str:
        return self.message.type

    @property
    def max_speed(self) -> float | None:
        return self.message.max_speed if self.message.HasField("max_speed") else None


def zone(
    name: str,
    kind: str,
    geometry: Mapping[str, Any],
    max_speed: float | None,
    chart: Chart,
    apart: float,
) -> Zone:
    """`apart`: the metres to stay away from it, if it is to be kept out of."""
    check_kind(kind)
    if max_speed is None and kind == SPEED_LIMIT:
        raise InvalidRequest(f'zone "{name}" limits the speed, and "max_speed" is missing')
    if max_speed is not None and not 0 < max_speed < math.inf:
        raise InvalidRequest(
            f'"max_speed" of zone "{name}" is above 0 metres per second, not {max_speed:g}'
        )
    outline = _outline(f'the geometry of zone "{name}"', geometry, chart)
    message = ZoneMessage(name=name, type=kind, geometry=to_struct(geometry), max_speed=max_speed)
    return Zone(message, geometry, outline, outline.grown(apart))


def check_kind(kind: str) -> None:
    if kind not in (KEEPOUT, SPEED_LIMIT):
        raise InvalidRequest(
            f'"{kind}" is no type of a zone; there are "{KEEPOUT}" and "{SPEED_LIMIT}"'
        )


def _outline(what: str, geometry: Mapping[str, Any], chart: Chart) -> Outline:
    kind = geometry.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidRequest(f'"type" of {what} is circle, box or polygon')
    unknown = sorted(set(geometry) - _FIELDS[kind])
    if unknown:
        raise InvalidRequest(
            f'{what} has "{unknown[0]}", which a {kind} does not: it has '
            + ", ".join(sorted(_FIELDS[kind]))
        )
    outline = _SHAPES[kind](what, geometry, chart)
    if outline.area < _SMALLEST:
        raise InvalidRequest(f"{what} has no area")
    return outline


def _circle(what: str, geometry: Mapping[str, Any], chart: Chart) -> Outline:
    center = chart.spot(geometry.get("center"), f'"center" of {what}')
    return Outline.circle(center, _length(geometry, "radius", what, chart))


def _box(what: str, geometry: Mapping[str, Any], chart: Chart) -> Outline:
    center = chart.spot(geometry.get("center"), f'"center" of {what}')
    size = geometry.get("size")
    if not isinstance(size, Mapping):
        raise InvalidRequest(f'"size" of {what} is an object with "x" and "y"')
    x, y = (_length(size, axis, f'"size" of {what}', chart) for axis in ("x", "y"))
    theta = number(geometry, "theta", what) if "theta" in geometry else 0.0
    return Outline.box(center, (x, y), theta)


def _polygon(what: str, geometry: Mapping[str, Any], chart: Chart) -> Outline:
    points = geometry.get("points")
    if not isinstance(points, list) or not 3 <= len(points) <= MOST_CORNERS:
        raise InvalidRequest(f'"points" of {what} is a list of 3 to {MOST_CORNERS} points')
    corners = [chart.spot(each, f"a point of {what}") for each in points]
    if any(one == other for one, other in zip(corners, corners[1:] + corners[:1], strict=True)):
        raise InvalidRequest(f"{what} has the same point twice in a row")
    return Outline.polygon(corners)


_SHAPES = {"circle": _circle, "box": _box, "polygon": _polygon}


def _length(written: Mapping[str, Any], key: str, what: str, chart: Chart) -> float:
    length = chart.metres(number(written, key, what))
    if length <= 0:
        raise InvalidRequest(f'"{key}" of {what} is above 0')
    return length
