"""What keeps to rules of its own because it moves: it can be stopped, whoever moves it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from grpclib import GRPCError

from cogwork.contracts.bench import Bench
from cogwork.contracts.contract import PATIENCE, Contract

PROMPTLY = 0.1
"""Seconds within which what moves is at rest, once it is told to stop."""


class MovingContract(Contract):
    """`move` and its arguments are chosen so that the motion lasts for some seconds."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        """A call that lasts as long as the motion, or that begins one that does not end."""
        raise NotImplementedError

    async def test_it_moves_and_stops(self, it: Any) -> None:
        async with moving(it, self.move):
            since = time.monotonic()
            await it.stop()
            assert not await it.is_moving(), "it was stopped, and says that it moves"
            assert time.monotonic() - since < PROMPTLY, "it takes too long to stop"

    async def test_everything_stops_when_told_to(self, bench: Bench, it: Any) -> None:
        async with moving(it, self.move):
            since = time.monotonic()
            await bench.machine.stop_all({})
            assert time.monotonic() - since < PROMPTLY, "it takes too long to stop"
            assert not await it.is_moving(), "everything was stopped, and it says that it moves"

    async def test_a_move_that_nobody_waits_for_ends(self, it: Any) -> None:
        """Unless it is one of those that go on after the call."""
        async with moving(it, self.move) as call:
            if call.done():
                return
            call.cancel()
            async with asyncio.timeout(PATIENCE):
                while await it.is_moving():
                    await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def moving(
    it: Any, move: Callable[[Any], Coroutine[Any, Any, Any]]
) -> AsyncIterator[asyncio.Task[Any]]:
    """While it moves. What is done meanwhile ends that, and may end the call with an error."""
    call = asyncio.ensure_future(move(it))
    try:
        async with asyncio.timeout(PATIENCE):
            while not await it.is_moving():
                if call.done():
                    call.result()
        yield call
    finally:
        with contextlib.suppress(GRPCError, asyncio.CancelledError):
            await asyncio.wait_for(call, PATIENCE)
