from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from starlette.responses import Response
from tests.support.waiting import run_others
from tests.unit.control.asgi import send_request

from cogwork.control.quota import MeteredResponse, Overloaded, Quota


def test_one_address_cannot_use_the_whole_quota() -> None:
    quota = Quota("followers", total=5, per_address=3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(quota.hold("a"))
        with pytest.raises(Overloaded, match="too many followers"):
            stack.enter_context(quota.hold("a"))
        for _ in range(2):
            stack.enter_context(quota.hold("b"))
        with pytest.raises(Overloaded):
            stack.enter_context(quota.hold("c"))
    assert not quota.held.by_client


def test_oversized_request_is_granted_alone() -> None:
    quota = Quota("bytes", total=10, per_address=5)
    with quota.hold("a", 100), pytest.raises(Overloaded), quota.hold("b", 1):
        pass
    with quota.hold("b", 1), pytest.raises(Overloaded), quota.hold("a", 100):
        pass


def test_oldest_allocation_is_evicted_first() -> None:
    quota = Quota("bytes", total=10, per_address=6)
    evicted: list[str] = []

    def hold_part(name: str, address: str, amount: int) -> AbstractContextManager[None]:
        return quota.hold(address, amount, lambda: evicted.append(name))

    with ExitStack() as stack:
        for name in ("one", "two", "three"):
            stack.enter_context(hold_part(name, "a", 2))
        stack.enter_context(hold_part("four", "a", 4))
        assert evicted == ["one", "two"]
        stack.enter_context(hold_part("five", "b", 4))
        stack.enter_context(hold_part("six", "c", 1))
        assert evicted == ["one", "two", "three"]
    assert not quota.held.by_client
    assert not quota._allocations


async def test_response_holds_its_quota_until_it_is_sent() -> None:
    quota = Quota("answers", total=1, per_address=1)
    resume = asyncio.Event()

    class Slow(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await resume.wait()
            await super().__call__(scope, receive, send)

    first = asyncio.ensure_future(send_request(MeteredResponse(Slow(b"one"), quota)))
    await run_others()
    declined = await send_request(MeteredResponse(Response(b"two"), quota))
    assert (declined.status, declined.headers["retry-after"]) == (503, "1")
    assert declined.body == b"too many answers at once; try again later\n"
    resume.set()
    assert (await first).body == b"one"
    assert (await send_request(MeteredResponse(Response(b"two"), quota))).body == b"two"
