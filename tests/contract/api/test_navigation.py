from __future__ import annotations

from viam.proto.common import GeoPoint, GeoPose, Pose
from viam.proto.service.navigation import Position

from cogwork.contracts.navigation import NavigationContract


def _geo(latitude: float, longitude: float) -> Position:
    place = GeoPoint(latitude=latitude, longitude=longitude)
    return Position(geo_pose=GeoPose(location=place, heading=90))


BESIDE = (
    {
        "name": "base",
        "api": "rdk:component:base",
        "model": "fake",
        "attributes": {"max_degs_per_sec": 360, "max_mm_per_sec": 2000},
    },
    {
        "name": "gps",
        "api": "rdk:component:movement_sensor",
        "model": "fake",
        "attributes": {"base": "base", "origin": {"latitude": 48, "longitude": 11}},
    },
)
BUILTIN = {
    "base": "base",
    "movement_sensor": "gps",
    "meters_per_sec": 2,
    "degs_per_sec": 360,
    "plan_deviation_m": 0.015,
    "position_polling_frequency_hz": 100,
}


class TestBuiltin(NavigationContract):
    model = "builtin"
    attributes = BUILTIN
    other_resources = BESIDE
    near = _geo(48.000001, 11)
    nearby = _geo(48, 11.000001)
    far = _geo(48.01, 11.01)
    around_far = {"type": "circle", "center": {"latitude": 48.01, "longitude": 11.01}, "radius": 90}


class TestBuiltinOnALocalMap(NavigationContract):
    model = "builtin"
    attributes = {**BUILTIN, "map_type": "local"}
    other_resources = BESIDE
    near = Position(pose=Pose(x=100, y=50, o_z=1, theta=30))
    nearby = Position(pose=Pose(x=50))
    far = Position(pose=Pose(x=100_000))
    around_far = {"type": "circle", "center": {"x": 100_000, "y": 0}, "radius": 1000}


class TestFake(NavigationContract):
    model = "fake"
    attributes = {"linear_m_per_sec": 2}
    near = Position(pose=Pose(x=100, y=50, o_z=1, theta=30))
    nearby = Position(pose=Pose(x=50))
    far = Position(pose=Pose(x=100_000))
    around_far = {"type": "circle", "center": {"x": 100_000, "y": 0}, "radius": 1000}


class TestFakeOnTheGlobe(NavigationContract):
    model = "fake"
    attributes = {"map_type": "gps", "latitude": 48, "longitude": 11, "linear_m_per_sec": 2}
    near = _geo(48.000001, 11)
    nearby = _geo(48, 11.000001)
    far = _geo(48.01, 11.01)
    around_far = {
        "type": "polygon",
        "points": [
            {"latitude": 48.009, "longitude": 11.009},
            {"latitude": 48.009, "longitude": 11.011},
            {"latitude": 48.011, "longitude": 11.01},
        ],
    }
