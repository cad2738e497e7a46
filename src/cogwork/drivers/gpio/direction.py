"""The direction of a shaft, for encoders that cannot measure it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

DirectionSource = Callable[[], int]
"""A function that returns the current or most recent direction, 1 or -1."""


@runtime_checkable
class NeedsDirection(Protocol):
    """An encoder that gets its direction from the motor on the same shaft."""

    def set_direction_source(self, direction: DirectionSource) -> None: ...


def bind_direction(encoder: object, direction: DirectionSource) -> None:
    """Give the encoder a direction source if it needs one."""
    if isinstance(encoder, NeedsDirection):
        encoder.set_direction_source(direction)
