from __future__ import annotations

from viam.proto.common import GeoPoint, GeoPose, Pose
from viam.proto.service.navigation import Position

from cogwork.contracts.navigation import NavigationContract


def _geo(latitude: float, longitude: float) -> Position:
    place = GeoPoint(latitude=latitude, longitude=longitude)
    return Position(geo_pose=GeoPose(location=place, heading=90))


class TestFake(NavigationContract):
    model = "fake"
    attributes = {"linear_m_per_sec": 2}
    near = Position(pose=Pose(x=100, y=50, o_z=1, theta=30))
    nearby = Position(pose=Pose(x=50))
    far = Position(pose=Pose(x=100_000))
    around_far = {"type": "circle", "center": {"x": 100_000, "y": 0}, "radius": 1000}


class TestOnTheGlobe(NavigationContract):
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
