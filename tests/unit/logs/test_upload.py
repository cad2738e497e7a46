from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.support.waiting import run_others, wait_until

from cogwork.core.clock import ManualClock, Waitable
from cogwork.logs.entry import Entry
from cogwork.logs.spool import LOGGER, Spool
from cogwork.logs.spool_index import Batch
from cogwork.logs.upload import KEPT_LINES, RETRY, QuotaSpent, Uploader, entries_to_send

DEADLINE = 30.0
SEGMENT_BYTES, MAX_BYTES = 10_000, 100_000


class WatchedClock(ManualClock):
    """A manual clock that knows whether a task waits for it, because the spool's threads do not."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = 0

    async def sleep(self, seconds: float) -> None:
        with self._count_waiter() if seconds else contextlib.nullcontext():
            await super().sleep(seconds)

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        with self._count_waiter():
            await super().wait(waitables, timeout)

    async def advance_stepwise(self, seconds: float, step: float = 5.0) -> None:
        """Advance in steps that are shorter than any pause between two attempts."""
        while seconds > 0:
            # A task that was woken may not have left its wait yet.
            await self.settle()
            await wait_until(lambda: self._waiting > 0)
            await self.advance(min(step, seconds))
            seconds -= step

    @contextlib.contextmanager
    def _count_waiter(self) -> Iterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


@dataclass
class Cloud:
    """A cloud that accepts the lines immediately, slowly, or not at all."""

    clock: ManualClock
    delay: float = 0.0
    refusal: Exception | None = None
    attempts: list[float] = field(default_factory=list)
    batches: list[Sequence[Entry]] = field(default_factory=list)
    sending: int = 0

    async def send(self, lines: Sequence[Entry]) -> None:
        self.attempts.append(self.clock.monotonic())
        self.sending += 1
        try:
            assert self.sending == 1, "two at once would arrive in any order"
            if self.delay:
                await self.clock.sleep(self.delay)
            if self.refusal is not None:
                raise self.refusal
            self.batches.append(lines)
        finally:
            self.sending -= 1

    def numbers(self) -> list[int]:
        return [int(entry.message) for entry in self._lines() if entry.logger == "rdk.test"]

    def reports(self) -> list[int]:
        return [entry.fields["dropped"] for entry in self._lines() if entry.logger == LOGGER]

    def _lines(self) -> list[Entry]:
        return [entry for batch in self.batches for entry in batch]


@dataclass
class Upload:
    spool: Spool
    clock: WatchedClock
    cloud: Cloud
    uploader: Uploader

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.uploader.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled(), "it ended by itself"

    def put(self, first: int, stop: int) -> None:
        for number in range(first, stop):
            self.spool.put(line(number))

    async def wait_for_arrival(self, count: int) -> None:
        await wait_until(lambda: len(self.cloud.numbers()) >= count)


def line(number: int) -> Entry:
    return Entry(float(number), logging.INFO, "rdk.test", "x.py:1", str(number))


@pytest.fixture
def upload(tmp_path: Path) -> Iterator[Upload]:
    clock = WatchedClock()
    cloud = Cloud(clock)
    spool = Spool(tmp_path / "queue", MAX_BYTES, SEGMENT_BYTES)
    uploader = Uploader(spool, cloud.send, clock, retry=replace(RETRY, rng=random.Random(1)))
    yield Upload(spool, clock, cloud, uploader)
    spool.close(DEADLINE)


async def test_lines_are_sent_in_order_in_batches_of_100(upload: Upload) -> None:
    upload.put(0, 250)
    async with upload.running():
        await upload.wait_for_arrival(250)
    assert upload.cloud.numbers() == [*range(250)]
    assert [len(batch) for batch in upload.cloud.batches] == [100, 100, 50]


async def test_new_lines_are_sent_at_once_but_not_before_the_pause(
    upload: Upload,
) -> None:
    async with upload.running():
        upload.put(0, 1)
        await upload.wait_for_arrival(1)
        await upload.clock.advance_stepwise(0.1)
        upload.put(1, 2)
        await upload.wait_for_arrival(2)
        upload.put(2, 3)
        upload.put(3, 4)
        assert upload.spool.flush(DEADLINE)
        await upload.clock.advance_stepwise(0.09, step=0.03)
        assert upload.cloud.numbers() == [0, 1]
        await upload.clock.advance_stepwise(0.02)
        await upload.wait_for_arrival(4)
    assert len(upload.cloud.batches) == 3


async def test_nothing_is_sent_without_lines(upload: Upload) -> None:
    async with upload.running():
        await upload.clock.advance_stepwise(600)
    assert upload.cloud.attempts == []


async def test_slow_cloud_gets_one_batch_at_a_time(upload: Upload) -> None:
    upload.cloud.delay = 29.0
    upload.put(0, 250)
    async with upload.running():
        await upload.clock.advance_stepwise(120)
        await upload.wait_for_arrival(250)
    assert upload.cloud.numbers() == [*range(250)]
    assert upload.cloud.reports() == []


async def test_send_without_response_times_out_and_is_retried(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    upload.cloud.delay = 1000.0
    upload.put(0, 5)
    async with upload.running():
        await upload.clock.advance_stepwise(120)
        assert upload.cloud.sending <= 1
        upload.cloud.delay = 0.0
        await upload.clock.advance_stepwise(100)
        await upload.wait_for_arrival(5)
    assert upload.cloud.numbers() == [*range(5)]
    first, second = upload.cloud.attempts[:2]
    assert 30 + 5 <= second - first <= 30 + 10
    assert [record.message for record in caplog.records] == [
        f"log upload failed: no response within 30s; keeping the log in {upload.spool.directory} "
        "and retrying"
    ]


async def test_refused_upload_backs_off_and_is_logged_once(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    upload.cloud.refusal = ConnectionError("the cloud is not reachable")
    upload.put(0, 5)
    async with upload.running():
        await upload.clock.advance_stepwise(1200)
        upload.cloud.refusal = None
        await upload.clock.advance_stepwise(60)
        await upload.wait_for_arrival(5)
    pauses = [b - a for a, b in zip(upload.cloud.attempts, upload.cloud.attempts[1:], strict=False)]
    assert min(pauses) >= 5
    assert max(pauses) <= 60
    assert sum(pauses[:2]) <= 10 + 20
    assert 1200 / 60 < len(pauses) < 1200 / 15
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "log upload failed: the cloud is not reachable"
    ]


async def test_cloud_that_answers_again_gets_the_lines_at_once(upload: Upload) -> None:
    upload.cloud.refusal = ConnectionError("gone")
    upload.put(0, 5)
    async with upload.running():
        await upload.clock.advance_stepwise(600)
        upload.cloud.refusal = None
        attempts = len(upload.cloud.attempts)
        upload.uploader.retry_now()
        await upload.wait_for_arrival(5)
        assert len(upload.cloud.attempts) == attempts + 1


@pytest.mark.parametrize("cancels", [True, False])
async def test_any_exception_of_the_sender_is_retried(upload: Upload, cancels: bool) -> None:
    attempts = 0

    async def send_after_failure(lines: Sequence[Entry]) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise asyncio.CancelledError if cancels else LookupError
        await upload.cloud.send(lines)

    upload.uploader = Uploader(upload.spool, send_after_failure, upload.clock)
    upload.put(0, 1)
    async with upload.running():
        await upload.clock.advance_stepwise(15)
        await upload.wait_for_arrival(1)


async def test_lines_kept_during_a_long_outage_are_sent_with_the_dropped_count(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    upload.cloud.refusal = ConnectionError("gone")
    async with upload.running():
        for minute in range(60):
            upload.put(minute * 50, minute * 50 + 50)
            await upload.clock.advance_stepwise(60)
        assert upload.spool.flush(DEADLINE)
        kept = upload.spool.counts()
        assert (kept.put, kept.delivered) == (3000, 0)
        assert kept.dropped > 1000
        upload.cloud.refusal = None
        await upload.clock.advance_stepwise(60)
        await wait_until(lambda: not upload.spool.counts().queued)
    numbers = upload.cloud.numbers()
    first_batch_size = len(upload.cloud.batches[0])
    assert numbers[:first_batch_size] == [*range(first_batch_size)], (
        "what was on its way is not dropped"
    )
    assert numbers[first_batch_size:] == [*range(first_batch_size + kept.dropped, 3000)]
    assert upload.cloud.reports() == [kept.dropped]
    assert max(map(len, upload.cloud.batches)) == 100
    assert len(caplog.records) == 1
    assert upload.spool.counts() == (3000, 3000 - kept.dropped, kept.dropped, 0)


async def test_each_loss_is_reported_once_when_the_report_is_refused(
    upload: Upload,
) -> None:
    upload.put(0, 2000)
    assert upload.spool.flush(DEADLINE)
    first = upload.spool.counts().dropped
    assert first > 0
    upload.cloud.refusal = ConnectionError("gone")
    async with upload.running():
        await upload.clock.advance_stepwise(60)
        upload.put(2000, 4000)
        assert upload.spool.flush(DEADLINE)
        second = upload.spool.counts().dropped - first
        assert second > 0
        await upload.clock.advance_stepwise(60)
        upload.cloud.refusal = None
        await upload.clock.advance_stepwise(60)
        await wait_until(lambda: not upload.spool.counts().queued)
    assert upload.cloud.reports() == [first, second]
    assert len(upload.cloud.numbers()) + first + second == 4000


class SpoolHandler(logging.Handler):
    """A log handler that puts the records into the spool."""

    def __init__(self, spool: Spool) -> None:
        super().__init__()
        self._spool = spool

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._spool.put(Entry(0.0, record.levelno, "log", "x", message))


async def test_log_line_about_an_outage_does_not_cause_more_uploads(upload: Upload) -> None:
    async def send_every_second_time(lines: Sequence[Entry]) -> None:
        even = len(upload.cloud.attempts) % 2 == 0
        upload.cloud.refusal = ConnectionError("try again") if even else None
        await upload.cloud.send(lines)

    upload.uploader = Uploader(upload.spool, send_every_second_time, upload.clock)
    handler = SpoolHandler(upload.spool)
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        upload.put(0, 1)
        async with upload.running():
            await upload.clock.advance_stepwise(3600)
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)
    assert len(upload.cloud.attempts) <= 4
    assert upload.spool.counts().put == 2


async def test_later_outage_is_logged_again(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    async with upload.running():
        for outage in range(3):
            upload.cloud.refusal = ConnectionError("gone")
            upload.put(outage, outage + 1)
            await wait_until(
                lambda: upload.cloud.refusal is not None and len(caplog.records) > outage  # noqa: B023
            )
            upload.cloud.refusal = None
            await upload.clock.advance_stepwise(200)
    assert upload.cloud.numbers() == [0, 1, 2]


async def test_cancellation_at_any_time_loses_no_line(upload: Upload) -> None:
    upload.put(0, 500)
    for moment in range(40):
        async with upload.running():
            await run_others(moment)
            await upload.clock.advance(0.01)
    async with upload.running():
        await wait_until(lambda: not upload.spool.counts().queued)
    assert sorted(set(upload.cloud.numbers())) == [*range(500)]


async def test_cancellation_ends_the_running_send(upload: Upload) -> None:
    upload.cloud.delay = 10.0
    upload.put(0, 5)
    async with upload.running():
        await wait_until(lambda: upload.cloud.sending == 1)
    assert upload.cloud.sending == 0
    assert upload.spool.counts().queued == 5


async def test_finish_sends_all_remaining_lines(upload: Upload) -> None:
    upload.put(0, 250)
    await upload.uploader.finish(budget=5.0)
    assert upload.cloud.numbers() == [*range(250)]
    assert upload.spool.counts().queued == 0


async def test_finish_does_not_retry(upload: Upload) -> None:
    upload.cloud.refusal = ConnectionError("gone")
    upload.put(0, 250)
    await upload.uploader.finish(budget=5.0)
    assert len(upload.cloud.attempts) == 1
    assert upload.spool.counts().queued == 250


async def test_finish_ends_with_its_budget(upload: Upload) -> None:
    upload.cloud.delay = 2.0
    upload.put(0, 500)
    finishing = asyncio.create_task(upload.uploader.finish(budget=5.0))
    for batch in range(3):
        await wait_until(lambda: len(upload.cloud.attempts) > batch)  # noqa: B023
        await upload.clock.advance(2.0 if batch < 2 else 1.0)
    await asyncio.wait_for(finishing, DEADLINE)
    assert upload.cloud.numbers() == [*range(200)]
    assert upload.cloud.sending == 0
    assert upload.spool.counts().queued == 300


async def test_finish_does_not_wait_for_a_sender_that_ignores_cancellation(
    upload: Upload, caplog: pytest.LogCaptureFixture
) -> None:
    release, ended = asyncio.Event(), asyncio.Event()

    async def send_ignoring_cancellation(_: Sequence[Entry]) -> None:
        upload.cloud.attempts.append(0.0)
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()
        raise ConnectionError("too late for anybody")

    uploader = Uploader(upload.spool, send_ignoring_cancellation, upload.clock)
    upload.put(0, 1)
    finishing = asyncio.create_task(uploader.finish(budget=5.0))
    try:
        await wait_until(lambda: bool(upload.cloud.attempts))
        await upload.clock.advance(5.0)
        assert not finishing.done(), "the sender has a moment to end"
        await upload.clock.advance(1.0)
        await asyncio.wait_for(finishing, DEADLINE)
    finally:
        release.set()
        await asyncio.wait_for(ended.wait(), DEADLINE)
    assert upload.spool.counts().queued == 1
    await run_others()
    gc.collect()
    assert caplog.records == [], "the loop found an error that nobody looked at"


def test_dropped_report_precedes_the_lines_after_the_gap() -> None:
    assert entries_to_send(Batch(0, 1, [line(0)], more=False), 9.0) == [line(0)]
    report, rest = entries_to_send(Batch(0, 4, [line(3)], more=False), 9.0)
    assert rest == line(3)
    assert (report.time, report.fields) == (3.0, {"dropped": 3})
    assert report.message.startswith("dropped 3 log lines while the cloud was unreachable")
    (alone,) = entries_to_send(Batch(0, 1, [], more=False), 9.0)
    assert alone.time == 9.0
    assert alone.message.startswith("dropped 1 log line ")


class LimitedCloud(Cloud):
    """A cloud that takes 20 lines a second, and says so."""

    free_at = 0.0

    async def send(self, lines: Sequence[Entry]) -> None:
        now = self.clock.monotonic()
        if now < self.free_at:
            raise QuotaSpent(self.free_at - now)
        await super().send(lines)
        self.free_at = now + len(lines) / 20


async def test_machine_that_logs_too_much_drops_counts_and_stays_up_to_date(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WatchedClock()
    cloud = LimitedCloud(clock)
    spool = Spool(tmp_path / "queue")
    upload = Upload(spool, clock, cloud, Uploader(spool, cloud.send, clock))
    put = 0
    async with upload.running():
        for step in range(40):
            upload.put(put, put + 2000)
            put += 2000
            assert spool.flush(DEADLINE)
            await clock.advance_stepwise(5, step=1)
            if step:
                assert put - cloud.numbers()[-1] <= 3 * 2000 + KEPT_LINES, "what is sent is old"
        for _ in range(100):
            await clock.advance_stepwise(5, step=1)
            if not spool.counts().queued:
                break
    spool.close(DEADLINE)
    numbers, dropped = cloud.numbers(), sum(cloud.reports())
    assert numbers == sorted(set(numbers))
    assert len(numbers) + dropped == put
    assert spool.counts() == (put, len(numbers), dropped, 0)
    assert dropped > 0.8 * put
    first, *rest = [record.message for record in caplog.records]
    assert first.startswith("the cloud accepts no more log lines for now")
    assert 3 <= len(rest) <= 15
    assert all("because the log quota is used up" in each for each in rest)
    assert sum(int(each.split()[1]) for each in rest) == dropped


async def test_machine_that_waits_for_its_quota_keeps_what_is_little(upload: Upload) -> None:
    upload.cloud = LimitedCloud(upload.clock)
    upload.uploader = Uploader(upload.spool, upload.cloud.send, upload.clock)
    upload.put(0, 500)
    async with upload.running():
        await upload.clock.advance_stepwise(60, step=1)
        await upload.wait_for_arrival(500)
    assert upload.cloud.numbers() == [*range(500)]
    assert upload.cloud.reports() == []


async def test_finish_does_not_wait_for_a_quota(upload: Upload) -> None:
    upload.cloud.refusal = QuotaSpent(60.0)
    upload.put(0, 250)
    await upload.uploader.finish(budget=5.0)
    assert len(upload.cloud.attempts) == 1
    assert upload.spool.counts().queued == 250
