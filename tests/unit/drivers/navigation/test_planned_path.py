from __future__ import annotations

import pytest

from cogwork.drivers.navigation.planned_path import PathStep, PlannedPath, SpeedLimit, path_length
from cogwork.drivers.navigation.polygon import Polygon


def test_steps_lead_past_the_stops() -> None:
    path = PlannedPath.from_legs((0, 0), [[(2, 0), (2, 2)], [(0, 2)]], 30.0, 1.0)
    assert list(path.points) == [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    assert [step.ends_leg for step in path.steps] == [False, True, True]
    assert [step.yaw for step in path.steps] == pytest.approx([0, 90, 180])
    assert path.length == path_length(path.points) == pytest.approx(6)
    assert path.end_yaw == 30


def test_remaining_distance() -> None:
    path = PlannedPath.from_legs((0, 0), [[(2, 0), (2, 2)], [(0, 2)]], None, 1.0)
    assert path.remaining_distance(0, (0, 0)) == pytest.approx(6)
    assert path.remaining_distance(1, (2, 1)) == pytest.approx(3)
    assert path.remaining_distance(3, (0, 2)) == 0


def test_steps_are_slower_inside_speed_limits() -> None:
    slow = SpeedLimit(Polygon.from_box((5.0, 0.0), (2.0, 2.0), 0), 0.5)
    slower = SpeedLimit(Polygon.from_box((5.5, 0.0), (1.0, 2.0), 0), 0.25)
    path = PlannedPath.from_legs((0, 0), [[(10, 0)]], None, 1.0, [slow, slower])
    assert [step.speed for step in path.steps] == [1, 0.5, 0.25, 1]
    assert [step.end[0] for step in path.steps] == pytest.approx([4, 5, 6, 10])
    assert [step.ends_leg for step in path.steps] == [False, False, False, True]
    assert list(path.points) == [(0.0, 0.0), (10.0, 0.0)]


@pytest.mark.parametrize(
    ("point", "distance"),
    [((5, 0), 0), ((5, -2), 2), ((-3, 4), 5), ((13, 4), 5)],
)
def test_distance_from_a_step(point: tuple[float, float], distance: float) -> None:
    step = PathStep((0, 0), (10, 0), 1.0, ends_leg=True)
    assert step.distance_from(point) == pytest.approx(distance)
    here = PathStep(point, point, 1.0, ends_leg=True)
    assert here.distance_from(point) == 0
