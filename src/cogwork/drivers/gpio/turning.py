"""Which way a shaft turns, for an encoder that cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

Direction = Callable[[], int]
"""1 or -1: which way it turns, or turned last."""


@runtime_checkable
class Directed(Protocol):
    """An encoder that wants to be told by the motor on the same shaft."""

    def turn_with(self, direction: Direction) -> None: ...


def lead(encoder: object, direction: Direction) -> None:
    """If it wants to be told."""
    if isinstance(encoder, Directed):
        encoder.turn_with(direction)
