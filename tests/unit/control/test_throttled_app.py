from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.control.asgi import ask

from cogwork.control.throttled_app import ThrottledApp
from cogwork.core.loop_throttle import LoopThrottle


class Site:
    """Counts how many requests begin in each turn of the loop."""

    def __init__(self) -> None:
        self.turn = 0
        self.begun: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append(self.turn)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def count(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


async def test_a_few_requests_begin_in_each_turn() -> None:
    site = Site()
    paced = ThrottledApp(site, LoopThrottle(per_turn=4))
    counting = asyncio.ensure_future(site.count())
    asking = [asyncio.ensure_future(ask(paced)) for _ in range(100)]
    asking[50].cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 99
    assert max(site.begun.count(turn) for turn in site.begun) <= 4
    assert site.turn < 50


async def test_a_lone_request_does_not_wait() -> None:
    site, turns = Site(), LoopThrottle()
    for _ in range(3):
        await ask(ThrottledApp(site, turns))
    assert len(site.begun) == 3
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turns._next_turn is None
