"""Where a shaft is during a move, by an encoder that somebody may set to zero meanwhile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """What the encoder said."""

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
    _before: float = 0.0
    """What the encoder lost by being set to zero."""

    @property
    def here(self) -> float:
        return self._before + self.last.turned

    def add(self, look: Look) -> None:
        possible = self.fastest * (look.answered - self.last.asked) + self.tick
        # No shaft jumps, and least of all to zero.
        if abs(look.turned - self.last.turned) > possible >= abs(look.turned):
            self._before = self.here
        self.last = look
