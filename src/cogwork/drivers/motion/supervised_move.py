"""Moves of a component, which is stopped when the caller gives up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol

from cogwork.core.clock import Clock
from cogwork.core.shield import await_shielded

STOP_TIMEOUT = 5.0
"""Timeout in seconds for a cancelled move to end, and for the component to stop."""


class StoppableMover(Protocol):
    async def stop(self) -> None: ...


async def run_move(
    mover: StoppableMover,
    move: Coroutine[Any, Any, None],
    clock: Clock,
    timeout: float | None = None,
) -> bool:
    """Return whether the move finished before the timeout; None means no timeout."""
    task = asyncio.ensure_future(move)
    try:
        await clock.wait([task], timeout)
        if task.done():
            task.result()
        return task.done()
    finally:
        if not task.done():
            await await_shielded(_abort_move(mover, task))


async def _abort_move(mover: StoppableMover, move: asyncio.Task[None]) -> None:
    """Cancel the move and stop the component: cancelling alone does not stop every component."""
    move.cancel()
    await asyncio.wait([move], timeout=STOP_TIMEOUT)
    with contextlib.suppress(Exception):
        async with asyncio.timeout(STOP_TIMEOUT):
            await mover.stop()
