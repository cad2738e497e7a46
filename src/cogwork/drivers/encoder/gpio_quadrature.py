"""Quadrature decoding: the phase of two signals gives the direction of the shaft."""

from __future__ import annotations


class QuadratureDecoder:
    def __init__(self) -> None:
        self.missed = 0
        """Number of missed edges. An edge was missed if a signal changes to the level it already
        had."""
        self._a: bool | None = None
        self._b: bool | None = None

    def on_a(self, high: bool) -> int:
        """Return the direction, 1 or -1, or 0 as long as the level of the other signal is
        unknown."""
        self.missed += self._a is high
        self._a = high
        if self._b is None:
            return 0
        return 1 if high != self._b else -1

    def on_b(self, high: bool) -> int:
        self.missed += self._b is high
        self._b = high
        if self._a is None:
            return 0
        return 1 if high == self._a else -1
