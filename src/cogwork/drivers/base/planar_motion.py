"""Planar motion of a base: its pose, computed as a function of time."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BasePose:
    """A pose relative to the start, in millimeters to the right (x) and forward (y).

    The heading is in degrees counterclockwise; full turns add up.
    """

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0

    def move_along_arc(self, distance: float, turn: float) -> BasePose:
        """Return the end of an arc: `distance` millimeters forward while turning `turn` degrees."""
        half = math.radians(turn) / 2
        chord = distance * (math.sin(half) / half if half else 1.0)
        direction = math.radians(self.heading) + half
        return BasePose(
            self.x - chord * math.sin(direction),
            self.y + chord * math.cos(direction),
            self.heading + turn,
        )


@dataclass(frozen=True, slots=True)
class Speed:
    linear: float = 0.0
    """Millimeters per second, forward."""
    angular: float = 0.0
    """Degrees per second, counterclockwise."""

    def __bool__(self) -> bool:
        return bool(self.linear or self.angular)


REST = Speed()


@dataclass(frozen=True, slots=True)
class Leg:
    """A straight move or a turn in place, with its speed."""

    distance: float
    turn: float
    speed: Speed
    seconds: float

    @classmethod
    def straight(cls, distance: float, velocity: float) -> Leg:
        """Return a straight move, which is backward if exactly one argument is negative."""
        rate = math.copysign(1, distance) * velocity
        return cls(math.copysign(distance, rate), 0.0, Speed(linear=rate), abs(distance / rate))

    @classmethod
    def spin(cls, angle: float, velocity: float) -> Leg:
        """Return a turn, which is clockwise if exactly one argument is negative."""
        rate = math.copysign(1, angle) * velocity
        return cls(0.0, math.copysign(angle, rate), Speed(angular=rate), abs(angle / rate))


@dataclass(frozen=True, slots=True)
class PlanarMotion:
    """A motion at constant speed that starts at `since`. Times are in seconds."""

    start: BasePose
    since: float
    speed: Speed = REST
    seconds: float = math.inf
    """Duration of the motion; infinite if only a command ends it."""
    end: BasePose | None = None
    """The pose at the end of the motion, or None if only a command ends it."""

    def pose_at(self, now: float) -> BasePose:
        if self.end is not None and self.has_ended(now):
            return self.end
        elapsed = now - self.since
        return self.start.move_along_arc(self.speed.linear * elapsed, self.speed.angular * elapsed)

    def speed_at(self, now: float) -> Speed:
        return REST if self.has_ended(now) else self.speed

    def has_ended(self, now: float) -> bool:
        return now - self.since >= self.seconds

    def continue_at(self, speed: Speed, now: float) -> PlanarMotion:
        """Return a motion from the current pose at the given speed."""
        return PlanarMotion(self.pose_at(now), now, speed)

    def continue_along(self, leg: Leg, now: float) -> PlanarMotion:
        """Return a motion from the current pose to the end of the leg."""
        start = self.pose_at(now)
        return PlanarMotion(
            start, now, leg.speed, leg.seconds, start.move_along_arc(leg.distance, leg.turn)
        )

    def stop_at_end(self, now: float) -> PlanarMotion:
        """Return the state at rest at the end of the motion, even if a timer fires slightly
        early."""
        return PlanarMotion(self.pose_at(now) if self.end is None else self.end, now)
