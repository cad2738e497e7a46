"""How a shaft turns: where it is, at any moment, without anything that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Motion:
    """One speed from one moment on. Moments are seconds, positions revolutions."""

    start: float
    since: float
    rpm: float = 0.0
    end: float | None = None
    """Where it stops by itself; None: nowhere."""

    @property
    def seconds(self) -> float:
        """How long it turns before it stops by itself."""
        if self.end is None:
            return math.inf
        return abs(self.end - self.start) / abs(self.rpm) * 60

    def speed(self, now: float) -> float:
        return self.rpm if now - self.since < self.seconds else 0.0

    def position(self, now: float) -> float:
        if self.end is not None and not self.speed(now):
            return self.end
        return self.start + self.rpm / 60 * (now - self.since)

    def at(self, rpm: float, now: float) -> Motion:
        """On from where it is, at this speed."""
        return Motion(self.position(now), now, rpm)

    def toward(self, end: float, rpm: float, now: float) -> Motion:
        """On from where it is to that position, whichever direction that takes."""
        start = self.position(now)
        return Motion(start, now, math.copysign(rpm, end - start), end)

    def arrived(self, now: float) -> Motion:
        """At rest, at its end: a timer may ring a hair early."""
        return Motion(self.position(now) if self.end is None else self.end, now)

    def zeroed(self, offset: float, now: float) -> Motion:
        """The same motion, counted from `offset` beyond where it is."""
        shift = -offset - self.position(now)
        end = None if self.end is None else self.end + shift
        return replace(self, start=self.start + shift, end=end)
