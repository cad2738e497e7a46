from __future__ import annotations

import pytest

from cogwork.drivers.navigation.chart import Place
from cogwork.drivers.navigation.outline import Outline
from cogwork.drivers.navigation.trip import SpeedLimit, Trip

START = Place((0.0, 0.0), 45.0)


def test_it_looks_where_it_goes() -> None:
    trip = Trip.along(START, [[(2.0, 0.0), (2.0, 2.0)], [(0.0, 2.0)]], 30.0, 1.0).begun(100)
    assert trip.place(101) == Place((1.0, 0.0), 0.0)
    assert trip.place(103) == Place((2.0, 1.0), 90.0)
    assert trip.place(105) == Place((1.0, 2.0), 180.0)
    assert trip.place(106) == trip.place(999) == Place((0.0, 2.0), 30.0)
    assert [trip.passed(at) for at in (100, 103.9, 104, 106)] == [0, 0, 1, 2]
    assert [trip.remaining(at) for at in (100, 103, 107)] == pytest.approx([6, 3, 0])
    assert [trip.speed(at) for at in (100, 105, 106)] == pytest.approx([1, 1, 0])


def test_it_is_slower_where_it_must_be() -> None:
    slow = SpeedLimit(Outline.box((5.0, 0.0), (2.0, 2.0), 0), 0.5)
    slower = SpeedLimit(Outline.box((5.5, 0.0), (1.0, 2.0), 0), 0.25)
    trip = Trip.along(START, [[(10.0, 0.0)]], None, 1.0, [slow, slower])
    assert trip.seconds == pytest.approx(4 + 2 + 4 + 4)
    assert [trip.speed(at) for at in (1, 5, 7, 13)] == pytest.approx([1, 0.5, 0.25, 1])
    assert trip.path == ((0.0, 0.0), (10.0, 0.0))
    assert trip.end == Place((10.0, 0.0), 0.0)


def test_where_it_already_is_it_arrives_at_once() -> None:
    trip = Trip.along(START, [[START.spot]], None, 1.0).begun(7)
    assert trip.is_over(7)
    assert trip.place(7) == START
    assert trip.speed(7) == trip.remaining(7) == 0
