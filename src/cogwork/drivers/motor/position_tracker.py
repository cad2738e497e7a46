"""Shaft position from a counter that clients may reset meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PositionReading:
    """A position that the encoder, or the motor on the shaft, reported."""

    revolutions: float
    asked_at: float
    """Time of the request. The position was measured between this time and `answered_at`."""
    answered_at: float


@dataclass(slots=True)
class PositionTracker:
    """Tracks the position as if the counter had never been reset."""

    last: PositionReading
    max_speed: float
    """Maximum speed of the shaft, in revolutions per second."""
    tick_size: float
    """Revolutions per tick of the encoder."""
    impossible_speed: float = math.inf
    """Maximum change of the counter in revolutions per second, even if `max_speed` is too low.

    A faster change means that the counter was set to an arbitrary value.
    """
    _offset: float = 0.0
    """Revolutions that were lost by resets."""

    @property
    def position(self) -> float:
        return self._offset + self.last.revolutions

    def add(self, reading: PositionReading) -> None:
        seconds = reading.answered_at - self.last.asked_at
        possible = self.max_speed * seconds + self.tick_size
        jump = abs(reading.revolutions - self.last.revolutions)
        # A shaft cannot jump: a jump to about zero is a reset of the counter.
        if jump > possible >= abs(reading.revolutions):
            self._offset = self.position
        elif jump > self.impossible_speed * seconds + self.tick_size:
            self._offset = self.position - reading.revolutions
        self.last = reading
