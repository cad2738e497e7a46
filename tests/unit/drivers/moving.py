"""What moves, driven by hand: its clock stands still until a test lets time pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from tests.served import until

from cogwork.core.clock import ManualClock


async def moved(client: Any, clock: ManualClock, move: Awaitable[Any], seconds: float) -> Any:
    """The move takes exactly that long."""
    moving = asyncio.ensure_future(move)
    await until(client.is_moving)
    await clock.advance(seconds - 0.001)
    assert await client.is_moving()
    assert not moving.done()
    await clock.advance(0.001)
    answer = await asyncio.wait_for(moving, 10)
    assert not await client.is_moving()
    return answer


async def begun(client: Any, move: Awaitable[Any]) -> asyncio.Future[Any]:
    moving = asyncio.ensure_future(move)
    await until(client.is_moving)
    return moving


async def stands(client: Any) -> None:
    async def still() -> bool:
        return not await client.is_moving()

    await until(still)
