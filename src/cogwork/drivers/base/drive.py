"""How a base drives over a plane: where it is, at any moment, without anything that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Millimetres to the right and ahead of where it first stood, and how far it has turned from
    there: degrees counterclockwise, as many as it likes. Ahead of it is y."""

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0

    def along(self, distance: float, turn: float) -> Place:
        """After so many millimetres ahead, evenly turning by so many degrees: the end of an arc."""
        half = math.radians(turn) / 2
        chord = distance * (math.sin(half) / half if half else 1.0)
        toward = math.radians(self.heading) + half
        return Place(
            self.x - chord * math.sin(toward),
            self.y + chord * math.cos(toward),
            self.heading + turn,
        )


@dataclass(frozen=True, slots=True)
class Speed:
    linear: float = 0.0
    """Millimetres per second, ahead."""
    angular: float = 0.0
    """Degrees per second, counterclockwise."""

    def __bool__(self) -> bool:
        return bool(self.linear or self.angular)


REST = Speed()


@dataclass(frozen=True, slots=True)
class Leg:
    """A way to go, and how fast: straight on, or a turn on the spot."""

    distance: float
    turn: float
    speed: Speed
    seconds: float

    @classmethod
    def straight(cls, distance: float, velocity: float) -> Leg:
        """Backward when either is negative."""
        rate = math.copysign(1, distance) * velocity
        return cls(math.copysign(distance, rate), 0.0, Speed(linear=rate), abs(distance / rate))

    @classmethod
    def spin(cls, angle: float, velocity: float) -> Leg:
        """Clockwise when either is negative."""
        rate = math.copysign(1, angle) * velocity
        return cls(0.0, math.copysign(angle, rate), Speed(angular=rate), abs(angle / rate))


@dataclass(frozen=True, slots=True)
class Drive:
    """One speed from one moment on. Moments are seconds."""

    start: Place
    since: float
    speed: Speed = REST
    seconds: float = math.inf
    """How long it goes on before it stops by itself."""
    end: Place | None = None
    """Where it stops by itself; None: nowhere."""

    def place(self, now: float) -> Place:
        if self.end is not None and self.is_over(now):
            return self.end
        passed = now - self.since
        return self.start.along(self.speed.linear * passed, self.speed.angular * passed)

    def velocity(self, now: float) -> Speed:
        return REST if self.is_over(now) else self.speed

    def is_over(self, now: float) -> bool:
        return now - self.since >= self.seconds

    def at(self, speed: Speed, now: float) -> Drive:
        """On from where it is, at this speed."""
        return Drive(self.place(now), now, speed)

    def over(self, leg: Leg, now: float) -> Drive:
        """On from where it is, to the end of the leg."""
        start = self.place(now)
        return Drive(start, now, leg.speed, leg.seconds, start.along(leg.distance, leg.turn))

    def arrived(self, now: float) -> Drive:
        """At rest, at its end: a timer may ring a hair early."""
        return Drive(self.place(now) if self.end is None else self.end, now)
