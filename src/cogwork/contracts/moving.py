"""The contract of components that move: any client can stop their motion."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from grpclib import GRPCError

from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.contracts.harness import Harness

MAX_STOP_TIME = 0.1
"""Maximum seconds from a stop command to a standstill."""

_STOPS = 5


class MovingContract(Contract):
    """The contract of moving components. The motion of `move` must last several seconds."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        """Return a call that lasts as long as the motion, or that starts an endless motion."""
        raise NotImplementedError

    async def test_moves_and_stops(self, resource: Any) -> None:
        async def stop() -> float:
            async with moving(resource, self.move):
                since = time.monotonic()
                await resource.stop()
                assert not await resource.is_moving(), (
                    "it was stopped but reports that it is moving"
                )
                return time.monotonic() - since

        await assert_stops_in_time(stop)

    async def test_stop_all_stops_it(self, harness: Harness, resource: Any) -> None:
        async def stop_all() -> float:
            async with moving(resource, self.move):
                since = time.monotonic()
                await harness.machine.motion.stop_all({})
                took = time.monotonic() - since
                assert not await resource.is_moving(), (
                    "everything was stopped but it reports that it is moving"
                )
                return took

        await assert_stops_in_time(stop_all)

    async def test_cancelled_move_stops(self, resource: Any) -> None:
        """The motion must stop when its call is cancelled. A motion that outlasts its call is not
        checked."""
        async with moving(resource, self.move) as call:
            if call.done():
                return
            call.cancel()
            async with asyncio.timeout(TIMEOUT):
                while await resource.is_moving():
                    await asyncio.sleep(0.01)


async def assert_stops_in_time(stop: Callable[[], Awaitable[float]]) -> None:
    """Check that at least one of several stops is in time: a busy computer may delay the others."""
    times = []
    for _ in range(_STOPS):
        times.append(await stop())
        if times[-1] < MAX_STOP_TIME:
            return
    raise AssertionError(
        f"each of {_STOPS} stops took at least {min(times):.2f}s; the limit is {MAX_STOP_TIME:g}s"
    )


@contextlib.asynccontextmanager
async def moving(
    resource: Any, move: Callable[[Any], Coroutine[Any, Any, Any]]
) -> AsyncIterator[asyncio.Task[Any]]:
    """Start the motion and run the block, which must end the motion. The call of the motion may
    then fail."""
    call = asyncio.ensure_future(move(resource))
    try:
        async with asyncio.timeout(TIMEOUT):
            while not await resource.is_moving():
                if call.done():
                    call.result()
        yield call
    finally:
        with contextlib.suppress(GRPCError, asyncio.CancelledError):
            await asyncio.wait_for(call, TIMEOUT)
