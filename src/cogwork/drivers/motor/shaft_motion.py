"""Shaft motion: the position, computed as a function of time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ShaftMotion:
    """A motion at constant speed that starts at `since`, in seconds and revolutions."""

    start: float
    since: float
    rpm: float = 0.0
    end: float | None = None
    """The position at the end of the motion, or None if only a command ends it."""

    @property
    def seconds(self) -> float:
        """Duration of the motion; infinite if only a command ends it."""
        if self.end is None:
            return math.inf
        return abs(self.end - self.start) / abs(self.rpm) * 60

    def speed_at(self, now: float) -> float:
        return self.rpm if now - self.since < self.seconds else 0.0

    def position_at(self, now: float) -> float:
        if self.end is not None and not self.speed_at(now):
            return self.end
        return self.start + self.rpm / 60 * (now - self.since)

    def continue_at(self, rpm: float, now: float) -> ShaftMotion:
        """Return a motion from the current position at the given speed."""
        return ShaftMotion(self.position_at(now), now, rpm)

    def continue_to(self, end: float, rpm: float, now: float) -> ShaftMotion:
        """Return a motion from the current position to `end`, in either direction."""
        start = self.position_at(now)
        return ShaftMotion(start, now, math.copysign(rpm, end - start), end)

    def stop_at_end(self, now: float) -> ShaftMotion:
        """Return the state at rest at the end of the motion, even if a timer fires slightly
        early."""
        return ShaftMotion(self.position_at(now) if self.end is None else self.end, now)

    def shift_zero(self, offset: float, now: float) -> ShaftMotion:
        """Return the same motion, measured from a new zero: the current position plus `offset`."""
        shift = -offset - self.position_at(now)
        end = None if self.end is None else self.end + shift
        return replace(self, start=self.start + shift, end=end)
