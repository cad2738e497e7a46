"""How a base gets somewhere: it turns, goes straight, looks where it is, and goes on from there."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from viam.components.base import Base

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError

LONGEST_LEG = 5000.0
"""Millimetres that it goes before it looks where it is."""
VAIN_LEGS = 3
"""Legs in a row that bring it no nearer, before it gives up."""

_SMALLEST_TURN = 0.5
_GRACE = 5.0
"""Seconds that a base gets to stop, and beyond those that a move should take."""


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
    task = asyncio.ensure_future(move)
    try:
        await clock.wait([task], 3 * seconds + _GRACE)
        if not task.done():
            raise Astray(f"it did not get there in {3 * seconds + _GRACE:.1f} seconds")
        await task
    finally:
        if not task.done():
            await _to_its_end(asyncio.ensure_future(_halt(base, task)))


async def _to_its_end(halting: asyncio.Task[None]) -> None:
    """However often whoever waits is told to give up: a base that still moves is not left alone."""
    told: asyncio.CancelledError | None = None
    while not halting.done():
        try:
            await asyncio.wait([halting])
        except asyncio.CancelledError as error:
            told = error
    if told is not None:
        raise told


async def _halt(base: Base, move: asyncio.Task[None]) -> None:
    """Not every base stops because nobody waits for it any more."""
    move.cancel()
    await asyncio.wait([move], timeout=_GRACE)
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_GRACE):
            await base.stop()
