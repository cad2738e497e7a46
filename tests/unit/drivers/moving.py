"""Helpers for moving components: a manual clock stands still until a test advances it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from tests.support.waiting import poll

from cogwork.core.clock import ManualClock


async def complete_move(
    client: Any, clock: ManualClock, move: Awaitable[Any], seconds: float
) -> Any:
    """Check that the move takes exactly that long, and return its result."""
    moving = asyncio.ensure_future(move)
    await poll(client.is_moving)
    await clock.advance(seconds - 0.001)
    assert await client.is_moving()
    assert not moving.done()
    await clock.advance(0.001)
    answer = await asyncio.wait_for(moving, 10)
    assert not await client.is_moving()
    return answer


async def start_move(client: Any, move: Awaitable[Any]) -> asyncio.Future[Any]:
    moving = asyncio.ensure_future(move)
    await poll(client.is_moving)
    return moving


async def wait_until_still(client: Any) -> None:
    async def still() -> bool:
        return not await client.is_moving()

    await poll(still)
