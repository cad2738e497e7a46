"""Drives of a base to a goal: turn, drive straight, locate the base, and repeat."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from viam.components.base import Base

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.drivers.motion.supervised_move import STOP_TIMEOUT, run_move

MAX_LEG = 5000.0
"""Maximum millimeters between two position checks."""
MAX_STALLED_LEGS = 3
"""Consecutive legs without progress before the drive fails."""
MIN_TURN = 0.5
"""Degrees below which a base does not turn."""


class OffCourse(CogworkError):
    """A base does not reach its goal."""

    status = "ABORTED"


@dataclass(frozen=True, slots=True)
class GoalBearing:
    """The goal relative to the base."""

    distance: float
    """Distance in millimeters."""
    turn: float
    """Turn toward the goal, in degrees to the left."""


class Locator(Protocol):
    """Locates the base relative to its goal."""

    async def locate_goal(self) -> GoalBearing: ...

    async def final_turn(self) -> float:
        """Return the turn to the final heading, in degrees to the left."""


@dataclass(frozen=True, slots=True)
class DriveSettings:
    linear: float
    """Speed in millimeters per second."""
    angular: float
    """Angular speed in degrees per second."""
    tolerance: float
    """Distance in millimeters at which the base counts as arrived."""


FindBase = Callable[[], Base]
"""A function that returns the base, which may differ after each leg.

The function raises an error if the base must not move on.
"""


async def drive_to_goal(
    find: FindBase, locator: Locator, settings: DriveSettings, clock: Clock
) -> None:
    stalled = 0
    bearing = await _locate_goal(locator)
    while bearing.distance > settings.tolerance:
        leg = min(bearing.distance, MAX_LEG)
        await turn(find, bearing.turn, settings, clock)
        await go_straight(find, leg, settings, clock)
        before, bearing = bearing, await _locate_goal(locator)
        stalled = stalled + 1 if before.distance - bearing.distance < leg / 2 else 0
        if stalled == MAX_STALLED_LEGS and bearing.distance > settings.tolerance:
            raise OffCourse(
                f"the base is still {bearing.distance / 1000:.2f} m away, and the last {stalled} "
                "legs hardly brought it closer: check that its wheels turn and its position is "
                "correct"
            )
    await turn(find, await locator.final_turn(), settings, clock)


async def turn(find: FindBase, degrees: float, settings: DriveSettings, clock: Clock) -> None:
    """Turn by the given degrees, positive to the left; the base takes the shorter direction."""
    degrees = math.remainder(degrees, 360)
    if abs(degrees) >= MIN_TURN:
        seconds = abs(degrees) / settings.angular
        base = find()
        await _run_timed_move(base, base.spin(degrees, settings.angular), seconds, clock)


async def go_straight(
    find: FindBase, millimeters: float, settings: DriveSettings, clock: Clock
) -> None:
    distance = round(millimeters)
    if distance:
        seconds = distance / settings.linear
        base = find()
        await _run_timed_move(base, base.move_straight(distance, settings.linear), seconds, clock)


async def _locate_goal(locator: Locator) -> GoalBearing:
    bearing = await locator.locate_goal()
    if not (math.isfinite(bearing.distance) and math.isfinite(bearing.turn)):
        raise OffCourse(
            "the base does not know where it is: its position or its heading is not a number"
        )
    return bearing


async def _run_timed_move(
    base: Base, move: Coroutine[Any, Any, None], seconds: float, clock: Clock
) -> None:
    """Run a move that should take the given seconds. Fail if it takes much longer."""
    timeout = 3 * seconds + STOP_TIMEOUT
    if not await run_move(base, move, clock, timeout):
        raise OffCourse(f"the base did not arrive within {timeout:.1f} seconds")
