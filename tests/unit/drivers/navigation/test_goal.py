from __future__ import annotations

from viam.proto.service.navigation import NavMode, Position

from cogwork.drivers.navigation.coordinates import MapPose
from cogwork.drivers.navigation.goal import MAX_LAPS, Goal
from cogwork.drivers.navigation.map_store import Destination
from cogwork.drivers.navigation.planned_path import PlannedPath


def make_goal(*points: tuple[float, float]) -> Goal:
    stops = [Destination(Position(), MapPose(point, None)) for point in points]
    return Goal(NavMode.NAV_MODE_ROUTE, stops, 1.0, 0.0)


def test_stops_are_counted_at_the_end_of_their_legs() -> None:
    goal = make_goal((2, 0), (3, 0))
    goal.begin(PlannedPath.from_legs((0, 0), [[(1, 1), (2, 0)], [(3, 0)]], None, 1.0))
    indexes = []
    for _ in range(3):
        goal.complete_step()
        indexes.append(goal.index)
    assert indexes == [0, 1, 1]


def test_detour_discards_the_given_path() -> None:
    goal = make_goal((2, 0))
    goal.given_path = [(1.0, 1.0), (2.0, 0.0)]
    goal.begin(PlannedPath.from_legs((0, 0), [[(1.0, 1.0)], [(2.0, 0.0)]], None, 1.0))
    goal.complete_step()
    assert goal.given_path == [(2.0, 0.0)]
    goal.begin(PlannedPath.from_legs((0, 0), [[(5.0, 5.0), (2.0, 0.0)]], None, 1.0))
    assert goal.given_path is None


def test_laps_are_counted_up_to_the_limit_of_the_message() -> None:
    goal = make_goal((2, 0))
    goal.lap = MAX_LAPS - 1
    for _ in range(2):
        goal.complete_lap()
        assert goal.lap == MAX_LAPS
