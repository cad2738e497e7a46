"""A base that knows how much its wheels slip, for whoever follows them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Slipping(Protocol):
    """Beside the API, which only tells how far apart the wheels are."""

    @property
    def turning_width_mm(self) -> float:
        """How far apart they would be on a base that turns as this one does, and does not slip."""
