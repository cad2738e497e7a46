"""A move of something else, which stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol

from cogwork.core.clock import Clock
from cogwork.core.ending import to_its_end

GRACE = 5.0
"""Seconds that a move gets to end once it is given up, and whatever moves to stop."""


class Stoppable(Protocol):
    async def stop(self) -> None: ...


async def moved(
    mover: Stoppable, move: Coroutine[Any, Any, None], clock: Clock, within: float | None = None
) -> bool:
    """Whether it was over within so many seconds; None: it may take as long as the call may."""
    task = asyncio.ensure_future(move)
    try:
        await clock.wait([task], within)
        if task.done():
            task.result()
        return task.done()
    finally:
        if not task.done():
            await to_its_end(_halt(mover, task))


async def _halt(mover: Stoppable, move: asyncio.Task[None]) -> None:
    """Not everything stops because nobody waits for it any more."""
    move.cancel()
    await asyncio.wait([move], timeout=GRACE)
    with contextlib.suppress(Exception):
        async with asyncio.timeout(GRACE):
            await mover.stop()
