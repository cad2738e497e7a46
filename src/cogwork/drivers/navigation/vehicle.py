"""The vehicle that a navigation service drives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.drivers.navigation.coordinates import MapPose
from cogwork.drivers.navigation.planned_path import PlannedPath


class NotLocalized(CogworkError):
    """The machine does not know its position."""

    status = "FAILED_PRECONDITION"


class LeftPath(CogworkError):
    """The vehicle is too far from its path, so another path must be planned."""

    status = "ABORTED"


class Vehicle(Protocol):
    @property
    def speed(self) -> float:
        """The commanded speed in meters per second, or 0 if the vehicle should stand still."""

    async def locate(self) -> MapPose:
        """Return the current pose; raise NotLocalized if it is unknown."""

    async def follow(self, path: PlannedPath, on_step: Callable[[], None]) -> None:
        """Follow the path to its end, and call `on_step` after each step.

        The vehicle stands still when this method returns, fails or is cancelled. Raise
        NotLocalized, LeftPath, or the error of the vehicle.
        """
