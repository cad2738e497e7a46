"""A few threads of one owner, for work that would block the loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from cogwork.core.errors import CogworkError, Interrupted

T = TypeVar("T")


class TooMuchWork(CogworkError):
    """More is asked than the threads get done."""

    status = "RESOURCE_EXHAUSTED"


class Workers:
    """Not the loop's own threads: one owner's work never waits for another's, and no more of it
    waits than is said."""

    def __init__(self, name: str, *, threads: int = 1, waiting: int = 32) -> None:
        self.name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._places = threading.Semaphore(self._most)

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """For work that several wait for: see `outcome`."""
        if not self._places.acquire(blocking=False):
            raise TooMuchWork(f"{self.name} has {self._most} pieces of work to do; ask less")
        try:
            future = self._executor.submit(work, *arguments)
        except RuntimeError as error:
            self._places.release()
            raise Interrupted(f"{self.name} is closed") from error
        future.add_done_callback(lambda _: self._places.release())
        return future

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Whoever gives up takes back work that has not begun; what has begun ends by itself."""
        future = self.submit(work, *arguments)
        try:
            return await outcome(future)
        except asyncio.CancelledError:
            future.cancel()
            raise
        finally:
            del future  # as in `outcome`

    def close(self) -> None:
        """Does not wait for work that is under way; what has not begun never does."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def close_after(self, last: Callable[[], None]) -> None:
        """`last` is done when all that was asked for has ended."""
        self._executor.shutdown(wait=False)
        ending = threading.Thread(target=self._end, args=(last,), name=self.name, daemon=True)
        ending.start()

    def _end(self, last: Callable[[], None]) -> None:
        self._executor.shutdown(wait=True)
        last()


async def in_a_thread(name: str, limit: float, work: Callable[..., T], *arguments: Any) -> T:
    """One piece of work in a thread of its own. Raises TimeoutError after `limit` seconds; a thread
    that hangs then keeps nobody else from working."""
    workers = Workers(name)
    try:
        async with asyncio.timeout(limit):
            return await workers.run(work, *arguments)
    finally:
        workers.close()


async def outcome(future: Future[T]) -> T:
    """Of work that others may wait for, too: whoever gives up does not end it."""
    if not future.done():
        await _end_of(future)
    if future.cancelled():
        raise Interrupted("it was closed before the work was done")
    try:
        return future.result()
    finally:
        del future  # an error would keep it, and it the error


async def _end_of(future: Future[Any]) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def tell(_: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it who waited
            loop.call_soon_threadsafe(end)

    future.add_done_callback(tell)
    await ended
