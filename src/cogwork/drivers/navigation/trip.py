"""A way that is gone in time: where the machine is, at any moment."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cogwork.drivers.course import Course, Leg
from cogwork.drivers.navigation.chart import Place, Spot
from cogwork.drivers.navigation.outline import Outline, between


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    outline: Outline
    speed: float
    """Metres per second."""


@dataclass(frozen=True, slots=True)
class Trip:
    """Pure: nothing counts while it is under way. It turns in no time."""

    course: Course
    path: tuple[Spot, ...]
    """From the start on, without what only changes the speed."""
    stations: tuple[float, ...]
    """Seconds after its start, at which each stop is reached."""
    faces: float
    """The way it looked before it started."""
    arrives: float | None
    """The way it shall look at the end; None: as it came."""

    @classmethod
    def along(
        cls,
        start: Place,
        legs: Sequence[Sequence[Spot]],
        arrives: float | None,
        speed: float,
        limits: Sequence[SpeedLimit] = (),
    ) -> Trip:
        """One leg for each stop, which ends there. It begins at the moment 0: see `begun`."""
        points, parts, stations = [start.spot], list[Leg](), list[int]()
        for leg in legs:
            for end in leg:
                for spot in (*_changes(points[-1], end, limits), end):
                    pace = _pace(between(points[-1], spot, 0.5), speed, limits)
                    parts.append(Leg(spot, math.dist(points[-1], spot) / pace))
                    points.append(spot)
            stations.append(len(parts))
        path = (start.spot, *itertools.chain.from_iterable(legs))
        course = Course.rest(start.spot, 0.0).along(parts, 0.0)
        return cls(
            course,
            path,
            tuple(course.times[number] for number in stations),
            start.yaw or 0.0,
            arrives,
        )

    def begun(self, since: float) -> Trip:
        return replace(self, course=replace(self.course, since=since))

    @property
    def seconds(self) -> float:
        return self.course.seconds

    @property
    def ends(self) -> float:
        return self.course.since + self.course.seconds

    @property
    def end(self) -> Place:
        x, y = self.course.end
        return Place((x, y), self._faces_at_the_end)

    def is_over(self, now: float) -> bool:
        return self.course.is_over(now)

    def place(self, now: float) -> Place:
        if self.is_over(now):
            return self.end
        x, y = self.course.at(now)
        return Place((x, y), _direction(*self._leg(now)))

    def speed(self, now: float) -> float:
        if self.is_over(now):
            return 0.0
        number = self._number(now)
        start, end = self.course.times[number - 1 : number + 1]
        return math.dist(*self._leg(now)) / (end - start) if end > start else 0.0

    def passed(self, now: float) -> int:
        """How many stops are behind it."""
        return bisect.bisect_right(self.stations, now - self.course.since)

    def remaining(self, now: float) -> float:
        """Metres."""
        if self.is_over(now):
            return 0.0
        ahead = [self.place(now).spot, *self._spots[self._number(now) :]]
        return sum(math.dist(one, other) for one, other in itertools.pairwise(ahead))

    @property
    def _faces_at_the_end(self) -> float:
        if self.arrives is not None:
            return self.arrives
        moves = [leg for leg in itertools.pairwise(self._spots) if leg[0] != leg[1]]
        return _direction(*moves[-1]) if moves else self.faces

    @property
    def _spots(self) -> list[Spot]:
        return [(x, y) for x, y in self.course.points]

    def _leg(self, now: float) -> tuple[Spot, Spot]:
        number = self._number(now)
        return self._spots[number - 1], self._spots[number]

    def _number(self, now: float) -> int:
        """Of the point that it is on its way to."""
        number = bisect.bisect_right(self.course.times, now - self.course.since)
        return min(max(number, 1), len(self.course.times) - 1)


def _changes(start: Spot, end: Spot, limits: Sequence[SpeedLimit]) -> list[Spot]:
    """Where another speed begins."""
    shares = {share for each in limits for share in each.outline.cuts(start, end)}
    return [between(start, end, share) for share in sorted(shares)]


def _pace(spot: Spot, speed: float, limits: Sequence[SpeedLimit]) -> float:
    return min([speed, *(each.speed for each in limits if each.outline.contains(spot))])


def _direction(start: Spot, end: Spot) -> float:
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
