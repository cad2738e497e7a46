"""How joints get from place to place: where each of them is, at any moment."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Joints = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Leg:
    """One part of a course, straight on from where the part before it ends."""

    end: Joints
    seconds: float
    ramp: float = 0.0
    """How many of the seconds it speeds up, and slows down again; 0: it goes evenly throughout."""


@dataclass(frozen=True, slots=True)
class Course:
    """From point to point. Pure: nothing counts while it is under way."""

    since: float
    """The moment its times count from, in seconds."""
    times: tuple[float, ...]
    """When it is at each point, ascending."""
    points: tuple[Joints, ...]
    ramps: tuple[float, ...]
    """Of the way to each point, as a leg has them."""

    @classmethod
    def rest(cls, point: Joints, now: float) -> Course:
        return cls(now, (0.0,), (point,), (0.0,))

    @property
    def seconds(self) -> float:
        return self.times[-1]

    @property
    def end(self) -> Joints:
        return self.points[-1]

    def at(self, now: float) -> Joints:
        passed = now - self.since
        leg = bisect.bisect_right(self.times, passed)
        if leg == 0:
            return self.points[0]
        if leg == len(self.times):
            return self.end
        start, end = self.times[leg - 1 : leg + 1]
        share = _share(passed - start, end - start, self.ramps[leg])
        return _between(self.points[leg - 1], self.points[leg], share)

    def is_over(self, now: float) -> bool:
        return self.left(now) <= 0

    def left(self, now: float) -> float:
        """How many seconds it takes until its end."""
        return self.since + self.seconds - now

    def through(self, points: Sequence[Joints], speeds: Joints, now: float) -> Course:
        """On from where it is, through the points. On each leg all joints arrive together, none of
        them faster than its speed."""
        stations = itertools.pairwise([self.at(now), *points])
        return self.along(
            [Leg(end, max(_each(start, end, speeds), default=0.0)) for start, end in stations], now
        )

    def apart(self, end: Joints, speeds: Joints, now: float) -> Course:
        """On from where it is, each joint at its own speed: none of them waits for another."""
        start = self.at(now)
        arrivals = _each(start, end, speeds)
        legs, passed = [], 0.0
        for moment in sorted({*arrivals}):
            shares = [min(moment / arrival, 1.0) if arrival else 1.0 for arrival in arrivals]
            legs.append(Leg(_between(start, end, *shares), moment - passed))
            passed = moment
        return self.along(legs, now)

    def along(self, legs: Iterable[Leg], now: float) -> Course:
        """On from where it is, leg by leg."""
        times, points, ramps = [0.0], [self.at(now)], [0.0]
        for leg in legs:
            times.append(times[-1] + leg.seconds)
            points.append(leg.end)
            ramps.append(leg.ramp)
        return Course(now, tuple(times), tuple(points), tuple(ramps))

    def extended(self, times: Sequence[float], points: Sequence[Joints], now: float) -> Course:
        """With more points behind its end. If it is over, its times stood still meanwhile: it makes
        up for nothing. What lies behind it is forgotten."""
        since = max(self.since, now - self.seconds)
        past = max(bisect.bisect_right(self.times, now - since) - 1, 0)
        return Course(
            since,
            (*self.times[past:], *times),
            (*self.points[past:], *points),
            (*self.ramps[past:], *(0.0 for _ in times)),
        )


def _each(start: Joints, end: Joints, speeds: Joints) -> list[float]:
    """How many seconds each of them takes."""
    return [abs(to - of) / speed for of, to, speed in zip(start, end, speeds, strict=True)]


def _share(passed: float, seconds: float, ramp: float) -> float:
    """How much of a leg is behind it. The speed between the ramps is 1 / (seconds - ramp)."""
    if passed < ramp:
        return passed**2 / (2 * ramp * (seconds - ramp))
    if seconds - passed < ramp:
        return 1 - (seconds - passed) ** 2 / (2 * ramp * (seconds - ramp))
    return (passed - ramp / 2) / (seconds - ramp)


def _between(start: Joints, end: Joints, *shares: float) -> Joints:
    """One share for all joints, or one for each of them."""
    each = itertools.cycle(shares)
    # Exactly the end where the share is 1: a joint that has arrived is where it was sent.
    return tuple(
        to if share == 1 else math.fsum((of * (1 - share), to * share))
        for of, to, share in zip(start, end, each, strict=False)
    )
