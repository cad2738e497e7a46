"""Geometries as written in a configuration or a kinematics file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cogwork.spatial.orientation import parse_orientation, require_number
from cogwork.spatial.pose import Pose

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "sphere": ("r",),
    "capsule": ("r", "l"),
    "point": (),
}
"""The names of the dimensions of each shape."""


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str
    """A key of `DIMENSIONS`."""
    sizes: tuple[float, ...]
    """The dimensions in millimeters, in the order of `DIMENSIONS`."""
    center: Pose
    """The pose relative to the frame of the part."""


def parse_shape(data: Mapping[str, Any]) -> Shape:
    """Parse a geometry such as `{"type": "box", "x": 100, "y": 200, "z": 50, "translation": {"z":
    25}}`.

    Raise ValueError if the geometry is invalid.
    """
    kind = data.get("type") or _guess_kind(data)
    names = DIMENSIONS.get(kind) if isinstance(kind, str) else None
    if names is None:
        raise ValueError(f'"{kind}" is not a shape; the shapes are {", ".join(DIMENSIONS)}')
    return Shape(kind, tuple(_parse_size(data, kind, name) for name in names), _parse_center(data))


def _guess_kind(data: Mapping[str, Any]) -> str:
    """Infer the type, which older files omit, from the dimensions."""
    if any(data.get(axis) for axis in ("x", "y", "z")):
        return "box"
    if data.get("l"):
        return "capsule"
    return "sphere" if data.get("r") else "point"


def _parse_size(data: Mapping[str, Any], kind: str, name: str) -> float:
    size = require_number(f'"{name}" of a {kind}', data.get(name, 0.0))
    if size <= 0:
        raise ValueError(f'"{name}" of a {kind} is missing, or not above 0')
    return size


def _parse_center(data: Mapping[str, Any]) -> Pose:
    translation, orientation = (
        _get_object(data, "translation"),
        _get_object(data, "orientation"),
    )
    x, y, z = (
        require_number(f'"{axis}" of the translation', translation.get(axis, 0.0))
        for axis in ("x", "y", "z")
    )
    kind = str(orientation.get("type") or "")
    return Pose((x, y, z), parse_orientation(kind, _get_object(orientation, "value")))


def _get_object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f'"{name}" must be an object')  # noqa: TRY004 - the input is invalid
    return value
