"""A base that knows where it is, for whoever follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cogwork.drivers.base.drive import Place, Speed


@dataclass(frozen=True, slots=True)
class Odometry:
    """Where a base is and how it moves, at one moment."""

    place: Place
    speed: Speed


@runtime_checkable
class Tracked(Protocol):
    """Beside the API, which has no call for it."""

    async def odometry(self) -> Odometry: ...
