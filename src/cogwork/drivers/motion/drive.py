"""How a base gets somewhere: it turns, goes straight, looks where it is, and goes on from there."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from viam.components.base import Base

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.drivers.motion.moves import GRACE, moved

LONGEST_LEG = 5000.0
"""Millimetres that it goes before it looks where it is."""
VAIN_LEGS = 3
"""Legs in a row that bring it no nearer, before it gives up."""

_SMALLEST_TURN = 0.5


class Astray(CogworkError):
    """A base that does not get where it is sent."""

    status = "ABORTED"


@dataclass(frozen=True, slots=True)
class Sight:
    """Where the destination is, seen from the base."""

    distance: float
    """Millimetres."""
    turn: float
    """Degrees to the left, until it is straight ahead."""


class Locator(Protocol):
    """Knows where the base is, and where it shall be."""

    async def sight(self) -> Sight: ...

    async def last_turn(self) -> float:
        """Degrees to the left, until it faces the way it shall at its destination."""


@dataclass(frozen=True, slots=True)
class Pace:
    linear: float
    """Millimetres per second."""
    angular: float
    """Degrees per second."""
    tolerance: float
    """Millimetres from its destination at which it has arrived."""


Find = Callable[[], Base]
"""The base, which may be another one after each leg; or an error, if it must not move on."""


async def drive(find: Find, locator: Locator, pace: Pace, clock: Clock) -> None:
    vain = 0
    seen = await _seen(locator)
    while seen.distance > pace.tolerance:
        leg = min(seen.distance, LONGEST_LEG)
        await turn(find, seen.turn, pace, clock)
        await go(find, leg, pace, clock)
        before, seen = seen, await _seen(locator)
        vain = vain + 1 if before.distance - seen.distance < leg / 2 else 0
        if vain == VAIN_LEGS and seen.distance > pace.tolerance:
            raise Astray(
                f"it is still {seen.distance / 1000:.2f} m away, and the last {vain} legs brought "
                "it hardly nearer: see whether its wheels turn and its position is right"
            )
    await turn(find, await locator.last_turn(), pace, clock)


async def turn(find: Find, degrees: float, pace: Pace, clock: Clock) -> None:
    """To the left, or whichever direction is shorter."""
    degrees = math.remainder(degrees, 360)
    if abs(degrees) >= _SMALLEST_TURN:
        seconds = abs(degrees) / pace.angular
        base = find()
        await _moved(base, base.spin(degrees, pace.angular), seconds, clock)


async def go(find: Find, millimetres: float, pace: Pace, clock: Clock) -> None:
    distance = round(millimetres)
    if distance:
        seconds = distance / pace.linear
        base = find()
        await _moved(base, base.move_straight(distance, pace.linear), seconds, clock)


async def _seen(locator: Locator) -> Sight:
    seen = await locator.sight()
    if not (math.isfinite(seen.distance) and math.isfinite(seen.turn)):
        raise Astray("it does not know where it is: its position or its heading is no number")
    return seen


async def _moved(base: Base, move: Coroutine[Any, Any, None], seconds: float, clock: Clock) -> None:
    """A move that should take so many seconds, and gets a few times as many."""
    within = 3 * seconds + GRACE
    if not await moved(base, move, clock, within):
        raise Astray(f"it did not get there in {within:.1f} seconds")
