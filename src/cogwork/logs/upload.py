"""Uploads the log queue in batches, and retries until each batch is delivered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from cogwork.core import duration
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.workers import Workers
from cogwork.logs.entry import Entry
from cogwork.logs.spool import LOGGER, Spool
from cogwork.logs.spool_index import Batch

DEADLINE = 30.0
"""Timeout in seconds for sending one batch."""
GRACE = 1.0
"""Seconds that a cancelled send has to end."""
RETRY = RetryPolicy(first=5.0, maximum=60.0)
PAUSE = 0.1
"""Seconds to wait after the queue was emptied, so that several new lines are sent together."""
IDLE = 60.0
"""Seconds between two checks of an empty queue without a notification."""

KEPT_LINES = 1000
"""Number of newest lines that are kept while the cloud's quota is used up."""
MIN_PAUSE, MAX_PAUSE = 1.0, 300.0
"""Minimum and maximum seconds to wait when the quota is used up, regardless of the cloud's
reply."""
REPORT_INTERVAL = 60.0
"""Minimum seconds between two log lines about dropped lines."""
DROPPED = "dropped"
"""Field of a notice that contains the number of lines missing before it."""

Send = Callable[[Sequence[Entry]], Awaitable[None]]
"""A function that returns when the entries are delivered. If it raises an error, the entries are
sent again; after QuotaSpent, older entries may be dropped first."""

_log = logging.getLogger(LOGGER)
_T = TypeVar("_T")


class QuotaSpent(Exception):
    """The quota is used up: the cloud accepts no more lines of this machine for now."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the quota of log lines is spent for {duration.render(retry_after)}")
        self.retry_after = retry_after


class Uploader:
    def __init__(
        self,
        spool: Spool,
        send: Send,
        clock: Clock,
        deadline: float = DEADLINE,
        retry: RetryPolicy = RETRY,
    ) -> None:
        self._spool = spool
        self._send = send
        self._clock = clock
        self._deadline = deadline
        self._backoff = Backoff(retry)
        self._retry: asyncio.Future[None] | None = None
        """Completed to end the pause after a failure."""
        self._is_down = False
        self._failed_at: float | None = None
        self._over_quota = 0
        """Number of lines dropped since the last report."""
        self._reported_at: float | None = None

    async def run(self) -> None:
        """Upload until cancelled. Must not run more than once at the same time."""
        self._backoff.reset()
        with contextlib.closing(Workers("log-upload")) as thread:
            while True:
                news = self._subscribe()
                batch = await thread.run(self._spool.next_batch)
                if batch is None:
                    await self._clock.wait({news}, IDLE)
                    continue
                try:
                    is_delivered = await self._deliver(batch, thread)
                except QuotaSpent as refusal:
                    self._backoff.reset()
                    await self._wait_for_quota(refusal.retry_after, thread)
                    continue
                self._report_drops()
                if not is_delivered:
                    await self._pause(self._backoff.next_delay())
                else:
                    self._backoff.reset()
                    # Pause: otherwise, a sender that logs would upload its own lines in an endless
                    # loop.
                    await self._clock.sleep(0 if batch.more else PAUSE)

    def retry_now(self) -> None:
        """End the pause after a failure, because the cloud is reachable again."""
        if self._retry is not None:
            _resolve(self._retry)

    async def _wait_for_quota(self, seconds: float, thread: Workers) -> None:
        """Wait until the cloud accepts lines again, and drop all but the newest lines.

        Otherwise, lines would arrive hours late, because they are logged faster than the quota
        allows.
        """
        if self._reported_at is None:
            _log.warning(
                "the cloud accepts no more log lines for now, because the log quota is used up; "
                "keeping the newest %d lines and dropping older ones; log less, or ask the "
                "operator of the cloud for a larger quota",
                KEPT_LINES,
            )
            self._reported_at = self._clock.monotonic()
        await self._clock.sleep(min(max(seconds, MIN_PAUSE), MAX_PAUSE))
        self._over_quota += await thread.run(partial(self._spool.drop_older, KEPT_LINES))
        self._report_drops()

    def _report_drops(self) -> None:
        """Log how many lines were dropped, but rarely, because this log line enters the queue as
        well."""
        now = self._clock.monotonic()
        if self._reported_at is None or now - self._reported_at < REPORT_INTERVAL:
            return
        if self._over_quota:
            _log.warning(
                "dropped %d log lines in the last %s, because the log quota is used up",
                *(self._over_quota, duration.render(round(now - self._reported_at))),
            )
        self._reported_at = now if self._over_quota else None
        self._over_quota = 0

    async def _pause(self, seconds: float) -> None:
        self._retry = asyncio.get_running_loop().create_future()
        await self._clock.wait({self._retry}, seconds)

    async def finish(self, budget: float) -> None:
        """Upload the remaining lines after `run` has ended. Stop at the first failure."""
        with contextlib.suppress(TimeoutError, QuotaSpent):
            await _with_timeout(self._clock, self._drain(), budget)

    async def _drain(self) -> None:
        with contextlib.closing(Workers("log-upload")) as thread:
            while batch := await thread.run(self._spool.next_batch):
                if not await self._deliver(batch, thread):
                    return

    def _subscribe(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        news: asyncio.Future[None] = loop.create_future()
        self._spool.notify_once(lambda: loop.call_soon_threadsafe(_resolve, news))
        return news

    async def _deliver(self, batch: Batch, thread: Workers) -> bool:
        """Send a batch. Return whether it was delivered. Raise QuotaSpent."""
        try:
            sending = self._send(entries_to_send(batch, self._clock.time()))
            await _with_timeout(self._clock, sending, self._deadline)
        except QuotaSpent:
            raise
        except Exception as error:
            self._report_failure(error)
            return False
        self._is_down = False
        await thread.run(partial(self._spool.mark_delivered, batch))
        return True

    def _report_failure(self, error: Exception) -> None:
        """Log one line per outage, because the line enters the queue as well.

        A failure soon after a success belongs to the same outage.
        """
        now = self._clock.monotonic()
        longest = self._backoff.policy.maximum
        recent = self._failed_at is not None and now - self._failed_at < longest
        if not self._is_down and not recent:
            _log.warning(
                "log upload failed: %s; keeping the log in %s and retrying",
                self._describe_error(error),
                self._spool.directory,
            )
        self._is_down, self._failed_at = True, now

    def _describe_error(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return f"no response within {duration.render(self._deadline)}"
        return error_text(error)


def entries_to_send(batch: Batch, now: float) -> list[Entry]:
    """Return the entries of a batch, after a notice about dropped lines if any were dropped."""
    if not batch.dropped:
        return [*batch.entries]
    time = batch.entries[0].time if batch.entries else now
    return [_dropped_notice(batch.dropped, time), *batch.entries]


def _dropped_notice(count: int, time: float) -> Entry:
    lines = "line" if count == 1 else "lines"
    message = (
        f"dropped {count} log {lines} while the cloud was unreachable or refused more, or the disk "
        "failed"
    )
    return Entry(time, logging.WARNING, LOGGER, "upload", message, {DROPPED: count})


async def _with_timeout(clock: Clock, work: Awaitable[_T], seconds: float) -> _T:
    task = asyncio.ensure_future(work)
    try:
        await clock.wait({task}, seconds)
        if not task.done():
            raise TimeoutError
        if task.cancelled():
            raise RuntimeError("the upload was cancelled")
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(_consume_exception)
            task.cancel()
            await clock.wait({task}, GRACE)


def _consume_exception(task: asyncio.Future[_T]) -> None:
    """Retrieve the error of an abandoned task, so that the event loop does not log it."""
    if not task.cancelled():
        task.exception()


def _resolve(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)
