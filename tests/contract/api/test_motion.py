from __future__ import annotations

from viam.proto.common import GeoPoint, Pose

from cogwork.contracts.motion import MotionContract

FRAME = {"parent": "world", "translation": {"x": 100, "y": 200, "z": 300}}
ARM = {
    "name": "arm",
    "api": "rdk:component:arm",
    "model": "fake",
    "attributes": {"speed_degs_per_sec": 10_000, "joints": [0, -40, 60, 0, 60, 0]},
    "frame": FRAME,
}
GRIPPER = {
    "name": "gripper",
    "api": "rdk:component:gripper",
    "model": "fake",
    "frame": {
        "parent": "arm",
        "translation": {"z": 50},
        "orientation": {"type": "ov_degrees", "value": {"x": 1, "z": 1, "th": 30}},
    },
}
GANTRY = {
    "name": "gantry",
    "api": "rdk:component:gantry",
    "model": "fake",
    "attributes": {"lengths_mm": [500, 400], "speed_mm_per_sec": 100_000},
    "frame": FRAME,
}
CAMERA = {
    "name": "camera",
    "api": "rdk:component:camera",
    "model": "fake",
    "frame": {
        "parent": "gantry",
        "translation": {"z": 50},
        "orientation": {"type": "ov_degrees", "value": {"x": 1, "z": 1}},
    },
}
BASE = {
    "name": "base",
    "api": "rdk:component:base",
    "model": "fake",
    "frame": {"parent": "world"},
}
GPS = {
    "name": "gps",
    "api": "rdk:component:movement_sensor",
    "model": "fake",
    "attributes": {"base": "base"},
}
MAP = {
    "name": "map",
    "api": "rdk:service:slam",
    "model": "fake",
    "attributes": {"speed_mm_per_sec": 0},
}


class TestArm(MotionContract):
    model = "builtin"
    other_resources = (ARM, BASE, GPS, MAP)
    component = "arm"
    step = Pose(x=10, y=-20, z=-30, o_z=1)
    base = "base"
    movement_sensor = "gps"
    slam = "map"
    far_away = GeoPoint(latitude=40.8, longitude=-73.98)


class TestRidingOnAnArm(MotionContract):
    model = "fake"
    other_resources = (ARM, GRIPPER)
    component = "gripper"
    step = Pose(x=10, y=-20, z=-30, o_z=1)


class TestGantry(MotionContract):
    model = "builtin"
    other_resources = (GANTRY,)
    component = "gantry"
    step = Pose(x=40, y=30)


class TestRidingOnAGantry(MotionContract):
    """The camera looks along x and z at once, but moves horizontally."""

    model = "builtin"
    other_resources = (GANTRY, CAMERA)
    component = "camera"
    step = Pose(x=40, z=40)
