"""Thread pools for work that would block the event loop, one for each owner."""

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
    """The thread pool has no room for more work."""

    status = "RESOURCE_EXHAUSTED"


class Workers:
    """A thread pool with a bounded queue. It is separate from the loop's own pool, so that the work
    of one owner never waits for the work of another."""

    def __init__(self, name: str, *, threads: int = 1, waiting: int = 32) -> None:
        self.name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._capacity = threads + waiting
        self._slots = threading.Semaphore(self._capacity)
        self._closed = False

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Start work that several callers may await with `await_future`. Raise TooMuchWork."""
        if not self._slots.acquire(blocking=False):
            raise TooMuchWork(
                f"{self.name} is busy: {self._capacity} tasks are queued or running; retry later"
            )
        try:
            future = self._executor.submit(work, *arguments)
        except RuntimeError as error:
            self._slots.release()
            if not self._closed:
                raise TooMuchWork(f"{self.name} cannot start a thread: {error}") from error
            raise Interrupted(f"{self.name} is closed") from error
        future.add_done_callback(lambda _: self._slots.release())
        return future

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run the work and return its result. Raise TooMuchWork.

        If the caller is cancelled, queued work is dropped, but running work continues to its end.
        """
        future = self.submit(work, *arguments)
        try:
            return await await_future(future)
        except asyncio.CancelledError:
            future.cancel()
            raise
        finally:
            del future  # breaks a reference cycle, as in `await_future`

    def close(self) -> None:
        """Drop queued work, and do not wait for running work."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def close_after(self, last: Callable[[], None]) -> None:
        """Accept no more work, and call `last` in a thread when all submitted work has ended."""
        self._closed = True
        self._executor.shutdown(wait=False)
        ending = threading.Thread(
            target=self._finish_then, args=(last,), name=self.name, daemon=True
        )
        ending.start()

    def _finish_then(self, last: Callable[[], None]) -> None:
        self._executor.shutdown(wait=True)
        last()


async def run_in_thread(name: str, limit: float, work: Callable[..., T], *arguments: Any) -> T:
    """Run one piece of work in its own thread. Raise TimeoutError after `limit` seconds.

    A thread that hangs after that does not block any other work.
    """
    workers = Workers(name)
    try:
        async with asyncio.timeout(limit):
            return await workers.run(work, *arguments)
    finally:
        workers.close()


async def await_future(future: Future[T]) -> T:
    """Return the result of shared work. Cancellation of one waiter does not cancel the work."""
    if not future.done():
        await _wait_done(future)
    if future.cancelled():
        raise Interrupted("the work was dropped, because the thread pool that runs it was closed")
    try:
        return future.result()
    finally:
        del future  # breaks the reference cycle between the future and its exception


async def _wait_done(future: Future[Any]) -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def set_done() -> None:
        if not done.done():
            done.set_result(None)

    def notify(_: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits
            loop.call_soon_threadsafe(set_done)

    future.add_done_callback(notify)
    await done
