"""The contract of components that move: any client can stop them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from grpclib import GRPCError

from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.contracts.harness import Harness

MAX_STOP_TIME = 0.1
"""Maximum seconds from a stop command to rest."""


class MovingContract(Contract):
    """The motion of `move` lasts several seconds."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        """Return a call that lasts as long as the motion, or that starts an endless motion."""
        raise NotImplementedError

    async def test_moves_and_stops(self, resource: Any) -> None:
        async with moving(resource, self.move):
            since = time.monotonic()
            await resource.stop()
            assert not await resource.is_moving(), "it was stopped but reports that it is moving"
            assert time.monotonic() - since < MAX_STOP_TIME, "it takes too long to stop"

    async def test_stop_all_stops_it(self, harness: Harness, resource: Any) -> None:
        async with moving(resource, self.move):
            since = time.monotonic()
            await harness.machine.stop_all({})
            assert time.monotonic() - since < MAX_STOP_TIME, "it takes too long to stop"
            assert not await resource.is_moving(), (
                "everything was stopped but it reports that it is moving"
            )

    async def test_cancelled_move_stops(self, resource: Any) -> None:
        """Does not apply to motions that continue after the call."""
        async with moving(resource, self.move) as call:
            if call.done():
                return
            call.cancel()
            async with asyncio.timeout(TIMEOUT):
                while await resource.is_moving():
                    await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def moving(
    resource: Any, move: Callable[[Any], Coroutine[Any, Any, Any]]
) -> AsyncIterator[asyncio.Task[Any]]:
    """Run the block during a motion. The block ends the motion, and may fail its call."""
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
