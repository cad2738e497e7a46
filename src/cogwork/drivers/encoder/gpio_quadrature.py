"""Two signals, a quarter of a pulse apart: which of them leads is which way the shaft turns."""

from __future__ import annotations


class Quadrature:
    def __init__(self) -> None:
        self.missed = 0
        """Edges that must have been there, because a signal changed to what it already was."""
        self._a: bool | None = None
        self._b: bool | None = None

    def a(self, high: bool) -> int:
        """1 or -1: which way it turned; 0 as long as the other signal is not known."""
        self.missed += self._a is high
        self._a = high
        if self._b is None:
            return 0
        return 1 if high != self._b else -1

    def b(self, high: bool) -> int:
        self.missed += self._b is high
        self._b = high
        if self._a is None:
            return 0
        return 1 if high == self._a else -1
