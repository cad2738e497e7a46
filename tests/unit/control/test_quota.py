from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from starlette.responses import Response
from tests.unit.control.asgi import ask

from cogwork.control.quota import MeteredResponse, Overloaded, Quota


def test_one_address_leaves_something_for_others() -> None:
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
    assert not quota._held_by_address


def test_one_that_is_too_large_is_granted_alone() -> None:
    quota = Quota("bytes", total=10, per_address=5)
    with quota.hold("a", 100), pytest.raises(Overloaded), quota.hold("b", 1):
        pass
    with quota.hold("b", 1), pytest.raises(Overloaded), quota.hold("a", 100):
        pass


def test_the_oldest_gives_way() -> None:
    quota = Quota("bytes", total=10, per_address=6)
    cut: list[str] = []

    def part(name: str, address: str, amount: int) -> AbstractContextManager[None]:
        return quota.hold(address, amount, lambda: cut.append(name))

    with ExitStack() as stack:
        for name in ("one", "two", "three"):
            stack.enter_context(part(name, "a", 2))
        stack.enter_context(part("four", "a", 4))
        assert cut == ["one", "two"]
        stack.enter_context(part("five", "b", 4))
        stack.enter_context(part("six", "c", 1))
        assert cut == ["one", "two", "three"]
    assert not quota._held_by_address
    assert not quota._allocations


async def test_a_response_holds_its_part_until_it_is_sent() -> None:
    quota = Quota("answers", total=1, per_address=1)
    go_on = asyncio.Event()

    class Slow(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await go_on.wait()
            await super().__call__(scope, receive, send)

    first = asyncio.ensure_future(ask(MeteredResponse(Slow(b"one"), quota)))
    await asyncio.sleep(0)
    declined = await ask(MeteredResponse(Response(b"two"), quota))
    assert (declined.status, declined.headers["retry-after"]) == (503, "1")
    assert declined.body == b"too many answers at once; try again later\n"
    go_on.set()
    assert (await first).body == b"one"
    assert (await ask(MeteredResponse(Response(b"two"), quota))).body == b"two"
