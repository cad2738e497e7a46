"""The position of a shaft, computed from a counter that clients may reset at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PositionReading:
    """A position as reported by an encoder or a motor."""

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
    """Speed in revolutions per second that no shaft reaches, even if `max_speed` is set too low.

    A faster change of the counter means that it was set to an arbitrary value.
    """
    _offset: float = 0.0
    """Revolutions to add to the counter to undo its resets."""

    @property
    def position(self) -> float:
        return self._offset + self.last.revolutions

    def add(self, reading: PositionReading) -> None:
        seconds = reading.answered_at - self.last.asked_at
        possible = self.max_speed * seconds + self.tick_size
        jump = abs(reading.revolutions - self.last.revolutions)
        # A shaft cannot jump: if the counter jumps to about zero, it was reset.
        if jump > possible >= abs(reading.revolutions):
            self._offset = self.position
        elif jump > self.impossible_speed * seconds + self.tick_size:
            self._offset = self.position - reading.revolutions
        self.last = reading
