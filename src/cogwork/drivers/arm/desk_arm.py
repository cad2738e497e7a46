"""An arm for a desk, made up for the fake: six joints, and upright when all of them are at 0."""

from __future__ import annotations

import math

from cogwork.spatial.kinematics import WORLD, Chain, Joint, Kind, Link
from cogwork.spatial.pose import Pose, Quaternion, Vector

_UP: Vector = (0.0, 0.0, 1.0)
_ASIDE: Vector = (0.0, 1.0, 0.0)


def desk_arm() -> Chain:
    """It reaches 660 mm from its shoulder, which is 150 mm above the desk."""
    return Chain.of(
        "desk_arm",
        [
            _link("base", WORLD, 90.0, {"type": "box", "x": 140.0, "y": 140.0, "z": 90.0}),
            _joint("waist", "base", _UP, 170.0),
            _link("shoulder_bracket", "waist", 60.0, _capsule(45.0, 120.0)),
            _joint("shoulder", "shoulder_bracket", _ASIDE, 110.0),
            _link("upper_arm", "shoulder", 280.0, _capsule(40.0, 340.0)),
            _joint("elbow", "upper_arm", _ASIDE, 145.0),
            _link("forearm", "elbow", 140.0, _capsule(35.0, 200.0)),
            _joint("forearm_roll", "forearm", _UP, 175.0),
            _link("wrist", "forearm_roll", 120.0, _capsule(32.0, 170.0)),
            _joint("wrist_pitch", "wrist", _ASIDE, 120.0),
            _link("hand", "wrist_pitch", 80.0, _capsule(30.0, 120.0)),
            _joint("flange_roll", "hand", _UP, 350.0),
            _link("flange", "flange_roll", 40.0, {"type": "box", "x": 60.0, "y": 60.0, "z": 40.0}),
        ],
    )


def _link(name: str, parent: str, long: float, shape: dict[str, object]) -> Link:
    """Straight up, with the shape around its middle."""
    geometry = {**shape, "translation": {"x": 0.0, "y": 0.0, "z": long / 2}}
    return Link(name, parent, Pose((0.0, 0.0, long), Quaternion.identity()), geometry)


def _capsule(radius: float, long: float) -> dict[str, object]:
    return {"type": "capsule", "r": radius, "l": long}


def _joint(name: str, parent: str, axis: Vector, degrees: float) -> Joint:
    most = math.radians(degrees)
    return Joint(name, parent, Kind.REVOLUTE, axis, -most, most)
