from __future__ import annotations

import pytest

from cogwork.drivers.navigation.coordinates import MapPose
from cogwork.drivers.navigation.path_motion import PathMotion, SpeedLimit
from cogwork.drivers.navigation.polygon import Polygon

START = MapPose((0.0, 0.0), 45.0)


def test_it_looks_where_it_goes() -> None:
    trip = PathMotion.from_legs(
        START, [[(2.0, 0.0), (2.0, 2.0)], [(0.0, 2.0)]], 30.0, 1.0
    ).start_at(100)
    assert trip.pose_at(101) == MapPose((1.0, 0.0), 0.0)
    assert trip.pose_at(103) == MapPose((2.0, 1.0), 90.0)
    assert trip.pose_at(105) == MapPose((1.0, 2.0), 180.0)
    assert trip.pose_at(106) == trip.pose_at(999) == MapPose((0.0, 2.0), 30.0)
    assert [trip.stops_passed(at) for at in (100, 103.9, 104, 106)] == [0, 0, 1, 2]
    assert [trip.remaining_distance(at) for at in (100, 103, 107)] == pytest.approx([6, 3, 0])
    assert [trip.speed_at(at) for at in (100, 105, 106)] == pytest.approx([1, 1, 0])


def test_it_is_slower_where_it_must_be() -> None:
    slow = SpeedLimit(Polygon.from_box((5.0, 0.0), (2.0, 2.0), 0), 0.5)
    slower = SpeedLimit(Polygon.from_box((5.5, 0.0), (1.0, 2.0), 0), 0.25)
    trip = PathMotion.from_legs(START, [[(10.0, 0.0)]], None, 1.0, [slow, slower])
    assert trip.seconds == pytest.approx(4 + 2 + 4 + 4)
    assert [trip.speed_at(at) for at in (1, 5, 7, 13)] == pytest.approx([1, 0.5, 0.25, 1])
    assert trip.path == ((0.0, 0.0), (10.0, 0.0))
    assert trip.end_pose == MapPose((10.0, 0.0), 0.0)


def test_where_it_already_is_it_arrives_at_once() -> None:
    trip = PathMotion.from_legs(START, [[START.point]], None, 1.0).start_at(7)
    assert trip.has_ended(7)
    assert trip.pose_at(7) == START
    assert trip.speed_at(7) == trip.remaining_distance(7) == 0
