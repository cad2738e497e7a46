from __future__ import annotations

import asyncio
from typing import Any

from tests.support.waiting import run_others
from tests.unit.control.asgi import send_request

from cogwork.control.throttled_app import ThrottledApp
from cogwork.core.limits.loop_throttle import LoopThrottle


class CountingApp:
    """Counts the requests that start in each turn of the loop."""

    def __init__(self) -> None:
        self.turn = 0
        self.start_turns: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.start_turns.append(self.turn)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def count(self) -> None:
        while True:
            self.turn += 1
            await run_others()


async def test_requests_per_turn_are_limited() -> None:
    site = CountingApp()
    throttled = ThrottledApp(site, LoopThrottle(per_turn=4))
    counting = asyncio.ensure_future(site.count())
    requests = [asyncio.ensure_future(send_request(throttled)) for _ in range(100)]
    requests[50].cancel()
    answers = await asyncio.gather(*requests, return_exceptions=True)
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 99
    assert max(site.start_turns.count(turn) for turn in site.start_turns) <= 4
    assert site.turn < 50


async def test_single_request_does_not_wait() -> None:
    site, turns = CountingApp(), LoopThrottle()
    for _ in range(3):
        await send_request(ThrottledApp(site, turns))
    assert len(site.start_turns) == 3
    await run_others(2)
    assert turns._next_turn is None
