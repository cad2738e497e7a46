from __future__ import annotations

from typing import Any

import pytest

from cogwork.spatial.pose import Pose, Quaternion
from cogwork.spatial.shape import Shape, parse_shape

IDENTITY = Pose((0.0, 0.0, 0.0), Quaternion.identity())


@pytest.mark.parametrize(
    ("config", "kind", "sizes"),
    [
        ({"type": "box", "x": 1, "y": 2, "z": 3}, "box", (1.0, 2.0, 3.0)),
        ({"x": 1, "y": 2, "z": 3}, "box", (1.0, 2.0, 3.0)),
        ({"type": "capsule", "r": 1, "l": 5}, "capsule", (1.0, 5.0)),
        ({"r": 1, "l": 5}, "capsule", (1.0, 5.0)),
        ({"type": "sphere", "r": 4}, "sphere", (4.0,)),
        ({"r": 4}, "sphere", (4.0,)),
        ({"type": "point"}, "point", ()),
        ({}, "point", ()),
    ],
)
def test_shape_type_and_sizes_are_parsed(
    config: dict[str, Any], kind: str, sizes: tuple[float, ...]
) -> None:
    assert parse_shape(config) == Shape(kind, sizes, IDENTITY)


def test_shape_center_has_translation_and_orientation() -> None:
    turned = {"type": "euler_angles", "value": {"roll": 0, "pitch": 0, "yaw": 3.141592653589793}}
    shape = parse_shape({"r": 1, "translation": {"x": 1, "z": 25}, "orientation": turned})
    assert shape.center.point == (1.0, 0.0, 25.0)
    assert abs(shape.center.rotation.z) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"type": "cone"}, '"cone" is not a shape; the shapes are box, sphere, capsule, point'),
        ({"type": ["box"]}, "is not a shape"),
        ({"type": "box", "x": 1}, '"y" of a box is missing, or not above 0'),
        ({"type": "sphere", "r": float("nan")}, '"r" of a sphere is not a finite number'),
        ({"translation": [1]}, '"translation" must be an object'),
        ({"translation": {"x": "1"}}, '"x" of the translation is not a finite number'),
        ({"orientation": {"value": 1}}, '"value" must be an object'),
    ],
)
def test_invalid_shape_raises(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_shape(config)
