from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from functools import partial

import pytest

from cogwork.core.errors import Interrupted
from cogwork.core.single_flight import SingleFlight, SingleFlightGroup


class Maker:
    """Work that ends when the test says so."""

    def __init__(self) -> None:
        self.made: list[asyncio.Future[str]] = []

    def __call__(self) -> asyncio.Future[str]:
        self.made.append(asyncio.get_running_loop().create_future())
        return self.made[-1]


@pytest.fixture
def newest() -> SingleFlight[str]:
    return SingleFlight()


@pytest.fixture
def make() -> Maker:
    return Maker()


@pytest.fixture
def noise(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails the test for what Python says about futures that nobody asked."""
    yield
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.DEBUG] == []


async def begun(*waiters: asyncio.Future[str]) -> None:
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)


async def test_work_is_done_once_for_each_key(newest: SingleFlight[str], make: Maker) -> None:
    for _ in range(2):
        waiters = [asyncio.ensure_future(newest.get(1, make)) for _ in range(3)]
        await begun()
        if not make.made[0].done():
            make.made[0].set_result("one")
        assert await asyncio.gather(*waiters) == ["one"] * 3
    assert len(make.made) == 1
    another = asyncio.ensure_future(newest.get(2, make))
    await begun(another)
    make.made[1].set_result("two")
    assert await another == "two"
    assert len(make.made) == 2


async def test_whoever_asks_meanwhile_gets_what_comes_of_it(
    newest: SingleFlight[str], make: Maker
) -> None:
    first = asyncio.ensure_future(newest.get(1, make))
    await begun(first)
    later = asyncio.ensure_future(newest.get(2, make))
    await begun(first, later)
    assert newest.is_busy
    make.made[0].set_result("one")
    assert [await first, await later] == ["one", "one"]
    assert len(make.made) == 1
    assert not newest.is_busy


async def test_whoever_gives_up_does_not_end_the_work(
    newest: SingleFlight[str], make: Maker, noise: None
) -> None:
    first = asyncio.ensure_future(newest.get(1, make))
    second = asyncio.ensure_future(newest.get(1, make))
    await begun(first, second)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    make.made[0].set_result("one")
    assert await second == "one"


async def test_an_error_reaches_all_who_wait_and_nobody_later(
    newest: SingleFlight[str], make: Maker, noise: None
) -> None:
    waiters = [asyncio.ensure_future(newest.get(1, make)) for _ in range(3)]
    await begun(*waiters)
    make.made[0].set_exception(ValueError("no"))
    for waiter in waiters:
        with pytest.raises(ValueError, match="no"):
            await waiter
    again = asyncio.ensure_future(newest.get(1, make))
    await begun(again)
    make.made[1].set_result("yes")
    assert await again == "yes"


async def test_an_error_that_nobody_waits_for_is_no_noise(
    newest: SingleFlight[str], make: Maker, noise: None
) -> None:
    waiter = asyncio.ensure_future(newest.get(1, make))
    await begun(waiter)
    waiter.cancel()
    await asyncio.wait([waiter])
    make.made.pop().set_exception(ValueError("nobody hears it"))
    await asyncio.sleep(0)


async def test_work_that_cannot_begin_leaves_things_as_they_were(newest: SingleFlight[str]) -> None:
    def fail() -> asyncio.Future[str]:
        raise ValueError("too much work")

    def succeed() -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.set_result("fine")
        return future

    with pytest.raises(ValueError, match="too much"):
        await newest.get(1, fail)
    assert await newest.get(1, succeed) == "fine"
    with pytest.raises(ValueError, match="too much"):
        await newest.get(2, fail)
    assert await newest.get(1, fail) == "fine"


async def test_closing_ends_the_work_and_tells_who_waits(newest: SingleFlight[str]) -> None:
    ended, under_way = [], asyncio.Event()

    async def work() -> str:
        under_way.set()
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(True)
        return ""

    waiters = [
        asyncio.ensure_future(newest.get(key, lambda: asyncio.ensure_future(work())))
        for key in (1, 2)
    ]
    await under_way.wait()
    await newest.aclose()
    assert ended
    for waiter in waiters:
        with pytest.raises(Interrupted, match="closed"):
            await waiter
    with pytest.raises(Interrupted, match="closed"):
        await newest.get(3, lambda: asyncio.ensure_future(work()))
    await newest.aclose()


async def test_closing_an_idle_one(newest: SingleFlight[str], make: Maker) -> None:
    await newest.aclose()
    with pytest.raises(Interrupted):
        await newest.get(1, make)
    assert make.made == []


class TestOfEach:
    async def test_things_do_not_wait_for_each_other(self, make: Maker) -> None:
        each: SingleFlightGroup[str] = SingleFlightGroup()
        depth = asyncio.ensure_future(each.get("depth", 1, make))
        colour = asyncio.ensure_future(each.get("color", 1, make))
        await begun(depth, colour)
        make.made[1].set_result("colours")
        assert await colour == "colours"
        assert not depth.done()
        make.made[0].set_result("distances")
        assert await depth == "distances"
        await each.aclose()

    async def test_of_many_things_the_idle_ones_are_forgotten(self) -> None:
        each: SingleFlightGroup[str] = SingleFlightGroup(max_flights=3)
        alive: set[int] = set()

        class Large(str):
            def __del__(self) -> None:
                alive.discard(int(self))

        async def make(number: int) -> str:
            alive.add(number)
            return Large(number)

        for number in range(20):
            await each.get(number, None, partial(asyncio.ensure_future, make(number)))
        gc.collect()
        assert alive == {17, 18, 19}
        await each.aclose()

    async def test_what_is_under_way_is_kept(self, make: Maker) -> None:
        each: SingleFlightGroup[str] = SingleFlightGroup(max_flights=2)
        waiters = [asyncio.ensure_future(each.get(number, 1, make)) for number in range(5)]
        await begun(*waiters)
        for future in make.made:
            future.set_result("done")
        assert await asyncio.gather(*waiters) == ["done"] * 5
        await each.aclose()

    async def test_closing_ends_them_all(self, make: Maker) -> None:
        each: SingleFlightGroup[str] = SingleFlightGroup()
        waiters = [asyncio.ensure_future(each.get(number, 1, make)) for number in range(3)]
        await begun(*waiters)
        await each.aclose()
        for waiter in waiters:
            with pytest.raises(Interrupted):
                await waiter
