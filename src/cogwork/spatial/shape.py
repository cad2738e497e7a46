"""Shapes of things, as a configuration or the description of an arm writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cogwork.spatial.orientation import number, read_orientation
from cogwork.spatial.pose import Pose

SIZES: Mapping[str, tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "sphere": ("r",),
    "capsule": ("r", "l"),
    "point": (),
}
"""The shapes there are, each with the names of its sizes."""


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str
    """One of `SIZES`."""
    sizes: tuple[float, ...]
    """In millimetres, in the order of their names."""
    center: Pose
    """Seen from the frame that it belongs to."""


def read_shape(written: Mapping[str, Any]) -> Shape:
    """Such as `{"type": "box", "x": 100, "y": 200, "z": 50, "translation": {"z": 25}}`. Raises
    ValueError."""
    kind = written.get("type") or _guessed(written)
    names = SIZES.get(kind) if isinstance(kind, str) else None
    if names is None:
        raise ValueError(f'"{kind}" is no shape; there are {", ".join(SIZES)}')
    return Shape(kind, tuple(_size(written, kind, name) for name in names), _center(written))


def _guessed(written: Mapping[str, Any]) -> str:
    """Older files leave the type out."""
    if any(written.get(axis) for axis in ("x", "y", "z")):
        return "box"
    if written.get("l"):
        return "capsule"
    return "sphere" if written.get("r") else "point"


def _size(written: Mapping[str, Any], kind: str, name: str) -> float:
    size = number(f'"{name}" of a {kind}', written.get(name, 0.0))
    if size <= 0:
        raise ValueError(f'"{name}" of a {kind} is missing, or not above 0')
    return size


def _center(written: Mapping[str, Any]) -> Pose:
    translation, orientation = _part(written, "translation"), _part(written, "orientation")
    x, y, z = (
        number(f'"{axis}" of the translation', translation.get(axis, 0.0))
        for axis in ("x", "y", "z")
    )
    kind = str(orientation.get("type") or "")
    return Pose((x, y, z), read_orientation(kind, _part(orientation, "value")))


def _part(written: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = written.get(name) or {}
    if not isinstance(part, Mapping):
        raise ValueError(f'"{name}" is an object')  # noqa: TRY004 - whoever wrote it has no types
    return part
