"""A fictional desk arm for the fake model: six joints, upright when all of them are at 0."""

from __future__ import annotations

import math

from cogwork.spatial.kinematics import WORLD, Chain, Joint, JointType, Link
from cogwork.spatial.pose import Pose, Quaternion, Vector

_UP: Vector = (0.0, 0.0, 1.0)
_SIDEWAYS: Vector = (0.0, 1.0, 0.0)


def desk_arm() -> Chain:
    """Return the arm, which reaches 660 mm from its shoulder, 150 mm above the desk."""
    return Chain.from_elements(
        "desk_arm",
        [
            _link("base", WORLD, 90.0, {"type": "box", "x": 140.0, "y": 140.0, "z": 90.0}),
            _joint("waist", "base", _UP, 170.0),
            _link("shoulder_bracket", "waist", 60.0, _capsule(45.0, 120.0)),
            _joint("shoulder", "shoulder_bracket", _SIDEWAYS, 110.0),
            _link("upper_arm", "shoulder", 280.0, _capsule(40.0, 340.0)),
            _joint("elbow", "upper_arm", _SIDEWAYS, 145.0),
            _link("forearm", "elbow", 140.0, _capsule(35.0, 200.0)),
            _joint("forearm_roll", "forearm", _UP, 175.0),
            _link("wrist", "forearm_roll", 120.0, _capsule(32.0, 170.0)),
            _joint("wrist_pitch", "wrist", _SIDEWAYS, 120.0),
            _link("hand", "wrist_pitch", 80.0, _capsule(30.0, 120.0)),
            _joint("flange_roll", "hand", _UP, 350.0),
            _link("flange", "flange_roll", 40.0, {"type": "box", "x": 60.0, "y": 60.0, "z": 40.0}),
        ],
    )


def _link(name: str, parent: str, length: float, shape: dict[str, object]) -> Link:
    """Return a vertical link with the geometry around its center."""
    geometry = {**shape, "translation": {"x": 0.0, "y": 0.0, "z": length / 2}}
    return Link(name, parent, Pose((0.0, 0.0, length), Quaternion.identity()), geometry)


def _capsule(radius: float, length: float) -> dict[str, object]:
    return {"type": "capsule", "r": radius, "l": length}


def _joint(name: str, parent: str, axis: Vector, degrees: float) -> Joint:
    limit = math.radians(degrees)
    return Joint(name, parent, JointType.REVOLUTE, axis, -limit, limit)
