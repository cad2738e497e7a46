"""Protocols of bases beyond the public API, for odometry and navigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cogwork.drivers.base.planar_motion import BasePose, Speed


@dataclass(frozen=True, slots=True)
class Odometry:
    """The pose and speed of a base at one point in time."""

    pose: BasePose
    speed: Speed


@runtime_checkable
class HasOdometry(Protocol):
    """A base that knows its pose, which the API cannot query."""

    async def odometry(self) -> Odometry: ...


@runtime_checkable
class HasTurningWidth(Protocol):
    """A base that corrects its width for wheel slip; the API reports only the uncorrected width."""

    @property
    def turning_width_mm(self) -> float:
        """The distance between the wheels of a slip-free base that turns like this one."""
