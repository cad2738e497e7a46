"""Where a shaft is, by a count that somebody may set anew meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """What the encoder said, or the motor on the shaft."""

    turned: float
    """Revolutions."""
    asked: float
    """When it was asked, and when it answered: it counted somewhen in between."""
    answered: float


@dataclass(slots=True)
class Travel:
    """Counts on as the encoder would, had nobody set it to zero."""

    last: Look
    fastest: float
    """Revolutions per second that the shaft does not exceed."""
    tick: float
    """Revolutions between two ticks of the encoder."""
    absurd: float = math.inf
    """Revolutions per second that no shaft makes, whatever `fastest` says: by so many, the count
    was set to anything."""
    _before: float = 0.0
    """What the encoder lost by being set to zero."""

    @property
    def here(self) -> float:
        return self._before + self.last.turned

    def add(self, look: Look) -> None:
        seconds = look.answered - self.last.asked
        possible = self.fastest * seconds + self.tick
        jump = abs(look.turned - self.last.turned)
        # No shaft jumps, and least of all to zero.
        if jump > possible >= abs(look.turned):
            self._before = self.here
        elif jump > self.absurd * seconds + self.tick:
            self._before = self.here - look.turned
        self.last = look
