"""The frame of a resource: accepted forms, and invalid ones with their messages."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import codes_of, diagnostics_of, load_config, sensor, spec_of

from cogwork.config.check.loader import LoadedConfig
from cogwork.config.schema import codes
from cogwork.config.schema.frame import FrameConfig
from cogwork.resource.messages.pose_proto import geometry_to_proto
from cogwork.spatial.pose import Pose, Quaternion


def load_with_frame(**frame: Any) -> LoadedConfig:
    return load_config(
        {"components": [sensor("a", frame={"parent": "world", **frame}), sensor("b")]}
    )


def frame_of(load: LoadedConfig) -> FrameConfig:
    assert codes_of(load) == []
    frame = load.result.config.components[0].frame
    assert frame is not None
    return frame


def test_frame_has_translation_and_orientation() -> None:
    frame = frame_of(
        load_with_frame(
            translation={"x": 1, "y": 2.5, "z": -3},
            orientation={"type": "ov_degrees", "value": {"x": 1, "th": 90}},
        )
    )
    assert frame.pose.point == pytest.approx((1, 2.5, -3))
    assert frame.pose.rotation.rotate((0, 0, 1)) == pytest.approx((1, 0, 0))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("ov_degrees", {"x": 0, "y": 0, "z": 1, "th": 90}),
        ("ov_degrees", {"th": 90}),
        ("ov_radians", {"x": 0, "y": 0, "z": 2, "th": math.pi / 2}),
        ("euler_angles", {"yaw": math.pi / 2}),
        ("axis_angles", {"z": 1, "th": math.pi / 2}),
        ("quaternion", {"w": 5, "z": 5}),
    ],
)
def test_every_orientation_type_expresses_a_quarter_turn(kind: str, value: JsonValue) -> None:
    frame = frame_of(load_with_frame(orientation={"type": kind, "value": value}))
    assert frame.pose.rotation.rotate((1, 0, 0)) == pytest.approx((0, 1, 0))


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"translation": None, "orientation": None},
        {"orientation": {}},
        {"orientation": {"type": "", "value": None}},
        {"orientation": {"type": "quaternion"}},
        {"orientation": {"type": "ov_degrees", "value": {}}},
    ],
    ids=repr,
)
def test_missing_pose_fields_mean_the_identity_pose(frame: dict[str, JsonValue]) -> None:
    assert frame_of(load_with_frame(**frame)).pose == Pose.identity()
    assert Pose.identity().rotation == Quaternion.identity()


@pytest.mark.parametrize(
    "geometry",
    [
        {},
        {"label": "dot", "type": "point"},
        {"type": "box", "x": 1, "y": 2.5, "z": 3, "translation": {"z": 15}},
        {"x": 1, "y": 2, "z": 3},
        {"type": "sphere", "r": 5},
        {"r": 5, "orientation": {"type": "quaternion", "value": {"w": 1}}},
        {"type": "capsule", "r": 5, "l": 20, "translation": None, "orientation": {}},
        {"r": 5, "l": 20},
    ],
    ids=repr,
)
def test_every_accepted_geometry_converts_to_proto(geometry: dict[str, JsonValue]) -> None:
    frame = frame_of(load_with_frame(geometry=geometry))
    assert frame.geometry is not None
    assert geometry_to_proto(frame.geometry, "a").WhichOneof("geometry_type") is not None


@pytest.mark.parametrize(
    ("frame", "words", "place"),
    [
        ({"orientation": {"type": "ov_degree"}}, "ov_degrees", "orientation/type"),
        ({"orientation": {"value": {"x": 1}}}, "needs a type", "orientation"),
        (
            {"orientation": {"type": "euler_angles", "value": {"x": 1}}},
            '"x" is not a field of euler_angles; the fields are roll, pitch, yaw',
            "orientation",
        ),
        (
            {"orientation": {"type": "ov_degrees", "value": {"th": "90"}}},
            '"th" of ov_degrees is not a finite number',
            "orientation",
        ),
        ({"orientation": {"type": "quaternion", "value": {"w": 0}}}, "not zero", "orientation"),
        ({"orientation": {"type": "quaternion", "value": [1]}}, "", "orientation/value"),
        ({"geometry": {"type": "box", "x": 1}}, '"y" of a box is missing', "geometry"),
        ({"geometry": {"x": 1}}, '"y" of a box is missing', "geometry"),
        ({"geometry": {"l": 1}}, '"r" of a capsule is missing', "geometry"),
        ({"geometry": {"type": "sphere", "r": -1}}, "or not above 0", "geometry"),
        ({"geometry": {"type": "sphere", "r": "1"}}, "not a finite number", "geometry"),
        (
            {"geometry": {"type": "bx", "x": 1}},
            '"bx" is not a shape; the shapes are box, sphere, capsule, point',
            "geometry",
        ),
        ({"geometry": {"type": ["box"]}}, "is not a shape", "geometry"),
        ({"geometry": {"translation": [1, 2, 3]}}, '"translation" must be an object', "geometry"),
        ({"geometry": {"translation": {"x": True}}}, '"x" of the translation', "geometry"),
        ({"geometry": {"orientation": 7}}, '"orientation" must be an object', "geometry"),
        ({"geometry": {"orientation": {"value": {"th": 1}}}}, "needs a type", "geometry"),
        (
            {"geometry": {"orientation": {"type": "quaternion", "value": [1]}}},
            '"value" must be an object',
            "geometry",
        ),
        ({"parent": ""}, 'write "world" or the name of a component', "frame"),
        ({"id": "world"}, 'the frame name "world" is reserved', "frame"),
        ({"id": "a", "parent": "a"}, 'the frame "a" is its own parent', "frame"),
    ],
    ids=str,
)
def test_invalid_frame_faults_only_its_resource(
    frame: dict[str, JsonValue], words: str, place: str
) -> None:
    load = load_with_frame(**frame)
    (diagnostic,) = diagnostics_of(load)
    assert words in f"{diagnostic.message} {diagnostic.hint}"
    assert diagnostic.code in (codes.BAD_VALUE, codes.WRONG_TYPE)
    fault = spec_of(load, "a").fault
    assert fault is not None
    assert f"{place})" in fault
    assert spec_of(load, "b").fault is None
