"""Drains the queue: batch after batch to whoever takes them, for as long as it takes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.workers import Workers
from cogwork.logs.account import Batch
from cogwork.logs.entry import Entry
from cogwork.logs.spool import LOGGER, Spool

DEADLINE = 30.0
"""Seconds that one batch may take."""
GRACE = 1.0
"""Seconds that a send that was given up gets to end."""
FIRST_RETRY = 5.0
LAST_RETRY = 60.0
PAUSE = 0.1
"""Seconds between two looks at a queue that was empty: what comes meanwhile goes together."""
IDLE = 60.0
"""Seconds after which it looks although nobody told it to."""

Send = Callable[[Sequence[Entry]], Awaitable[None]]
"""Returns when they have arrived; raises if they may not have. They are sent again then."""

_log = logging.getLogger(LOGGER)
_T = TypeVar("_T")


class Uploader:
    def __init__(
        self,
        spool: Spool,
        send: Send,
        clock: Clock,
        deadline: float = DEADLINE,
        rng: random.Random | None = None,
    ) -> None:
        self._spool = spool
        self._send = send
        self._clock = clock
        self._deadline = deadline
        self._rng = rng or random.Random()  # noqa: S311 - nobody gains by guessing it
        self._down = False
        self._failed_at: float | None = None

    async def run(self) -> None:
        """Until cancelled. Not twice at once."""
        failures = 0
        with contextlib.closing(Workers("log-upload")) as thread:
            while True:
                news = self._listen()
                batch = await thread.run(self._spool.batch)
                if batch is None:
                    await self._clock.wait({news}, IDLE)
                elif not await self._deliver(batch, thread):
                    failures += 1
                    await self._clock.sleep(retry_delay(failures, self._rng))
                else:
                    failures = 0
                    # A sender that logs would otherwise keep itself busy with its own lines.
                    await self._clock.sleep(0 if batch.more else PAUSE)

    async def finish(self, budget: float) -> None:
        """One last try, when `run` has ended: all that is left, as long as it goes well."""
        with contextlib.suppress(TimeoutError):
            await _within(self._clock, self._drain(), budget)

    async def _drain(self) -> None:
        with contextlib.closing(Workers("log-upload")) as thread:
            while batch := await thread.run(self._spool.batch):
                if not await self._deliver(batch, thread):
                    return

    def _listen(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        news: asyncio.Future[None] = loop.create_future()
        self._spool.tell(lambda: loop.call_soon_threadsafe(_resolve, news))
        return news

    async def _deliver(self, batch: Batch, thread: Workers) -> bool:
        """Whether it has arrived."""
        try:
            sending = self._send(lines_of(batch, self._clock.time()))
            await _within(self._clock, sending, self._deadline)
        except Exception as error:
            self._note(error)
            return False
        self._down = False
        await thread.run(partial(self._spool.done, batch))
        return True

    def _note(self, error: Exception) -> None:
        """One line per outage, which is put into the queue as well: it must not cause another.

        What fails again soon after it worked is the same outage.
        """
        now = self._clock.monotonic()
        recent = self._failed_at is not None and now - self._failed_at < LAST_RETRY
        if not self._down and not recent:
            _log.warning(
                "the log cannot be uploaded: %s; it waits in %s, and is sent when that works again",
                self._why(error),
                self._spool.directory,
            )
        self._down, self._failed_at = True, now

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return f"no answer within {duration.render(self._deadline)}"
        return str(error) or type(error).__name__


def retry_delay(failures: int, rng: random.Random) -> float:
    """May be twice as long each time, at random so that many machines do not come back as one."""
    longest = min(FIRST_RETRY * 2.0 ** min(failures, 30), LAST_RETRY)
    return rng.uniform(FIRST_RETRY, longest)


def lines_of(batch: Batch, now: float) -> list[Entry]:
    """With the line about those that are missing in its place: ahead of what is left."""
    if not batch.dropped:
        return [*batch.entries]
    moment = batch.entries[0].time if batch.entries else now
    return [_about_dropped(batch.dropped, moment), *batch.entries]


def _about_dropped(count: int, moment: float) -> Entry:
    lines = "line was" if count == 1 else "lines were"
    message = f"{count} {lines} dropped while nobody could be reached or the disk failed"
    return Entry(moment, logging.WARNING, LOGGER, "upload", message, {"dropped": count})


async def _within(clock: Clock, work: Awaitable[_T], seconds: float) -> _T:
    task = asyncio.ensure_future(work)
    try:
        await clock.wait({task}, seconds)
        if not task.done():
            raise TimeoutError
        if task.cancelled():
            raise RuntimeError("it was cancelled")
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(_look)
            task.cancel()
            await clock.wait({task}, GRACE)


def _look(task: asyncio.Future[_T]) -> None:
    """At an error that comes too late for anybody, which the loop would complain about."""
    if not task.cancelled():
        task.exception()


def _resolve(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)
