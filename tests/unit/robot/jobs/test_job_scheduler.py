"""The job scheduler: due times, failures and changes of the configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, tzinfo
from typing import NoReturn
from zoneinfo import ZoneInfo

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.unit.robot.bench import job, wait_forever
from viam.resource.manager import ResourceNotFoundError  # type: ignore[attr-defined]

from cogwork.config.schema.machine import JobConfig
from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError, Interrupted
from cogwork.robot.jobs.job_record import JobFailure, JobRecord
from cogwork.robot.jobs.job_scheduler import JobScheduler, StillRunning
from cogwork.robot.unavailable import Stopping

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86400

Behavior = Callable[[], Awaitable[None]]


async def test_failure_reason_contains_no_secret() -> None:
    async def call(config: JobConfig) -> None:
        raise CogworkError("cannot log in with hunter-22")

    clock = ManualClock()
    jobs = JobScheduler(clock, call, redact=lambda text: text.replace("hunter-22", "***"))
    jobs.apply([job("a", "1s")])
    await clock.advance(1)
    assert jobs.statuses()[0].failures[0].reason == "cannot log in with ***"
    await jobs.aclose()


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


class JumpingClock(ManualClock):
    """A clock whose wall time may jump while its monotonic time does not."""

    jump = 0.0

    def time(self) -> float:
        return super().time() + self.jump

    def compute(self, seconds: float) -> None:
        self._now += seconds


class SchedulerHarness:
    """A job scheduler on a manual clock, which starts at zero by default."""

    def __init__(self, now: float = 0.0, zone: tzinfo | None = BERLIN) -> None:
        self.clock = JumpingClock(now)
        self.jobs = JobScheduler(self.clock, self.call, zone)
        self.runs: list[tuple[str, float]] = []
        self.running = self.max_running = 0
        self.behavior: Behavior | None = None

    async def call(self, config: JobConfig) -> None:
        self.runs.append((config.name, self.clock.time()))
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            if self.behavior is not None:
                await self.behavior()
        finally:
            self.running -= 1

    @property
    def times(self) -> list[float]:
        return [moment for _, moment in self.runs]

    def record(self, name: str = "j") -> JobRecord:
        return next(each for each in self.jobs.statuses() if each.name == name)

    def sleep_for(self, seconds: float) -> None:
        self.behavior = lambda: self.clock.sleep(seconds)

    def block_for(self, seconds: float) -> None:
        """Make each run block the loop, without an await."""

        async def compute() -> None:
            self.clock.compute(seconds)

        self.behavior = compute

    def fail_with(self, error: BaseException | type[BaseException]) -> None:
        async def fail() -> NoReturn:
            raise error

        self.behavior = fail


@contextlib.asynccontextmanager
async def running_scheduler(
    *configs: JobConfig, now: float = 0.0
) -> AsyncIterator[SchedulerHarness]:
    harness = SchedulerHarness(now)
    harness.jobs.apply(configs)
    try:
        yield harness
    finally:
        assert await harness.jobs.aclose() == []


async def ignore_cancellation(released: asyncio.Event) -> None:
    """Wait for the event and ignore cancellation."""
    while not released.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await released.wait()


class TestIntervals:
    async def test_interval_job_is_due_after_each_period(self) -> None:
        async with running_scheduler(job(schedule="10s"), now=3.0) as harness:
            await harness.clock.advance(12)
            assert harness.times == [13]
            await harness.clock.advance(28)
            assert harness.times == [13, 23, 33, 43]

    async def test_slow_runs_do_not_cause_drift(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(7)
            await harness.clock.advance(100)
            assert harness.times == list(range(10, 101, 10))

    async def test_missed_due_times_are_made_up_for_once(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(35)
            await harness.clock.advance(40)
            harness.sleep_for(1)
            await harness.clock.advance(40)
            assert harness.times == [10, 45, 50, 60, 70, 80]
            assert harness.max_running == 1

    async def test_run_of_a_whole_period_is_followed_at_once(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(10)
            await harness.clock.advance(55)
            assert harness.times == [10, 20, 30, 40, 50]

    async def test_wall_clock_does_not_affect_intervals(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            await harness.clock.advance(15)
            harness.clock.jump = 1e6
            await harness.clock.advance(10)
            harness.clock.jump = -1e6
            await harness.clock.advance(10)
            assert len(harness.runs) == 3

    async def test_blocking_jobs_leave_time_for_others(self) -> None:
        """Each run blocks the loop for 10 ms and is due every 10 ms."""
        async with running_scheduler(
            *(job(f"j{number}", schedule="10ms") for number in range(20))
        ) as harness:
            harness.block_for(0.01)
            started = harness.clock.monotonic()
            await harness.clock.advance(20)
            passed = harness.clock.monotonic() - started
            assert 0.1 < len(harness.runs) * 0.01 / passed < 0.5

    async def test_interval_does_not_drift_in_a_day(self) -> None:
        start = 1_000_000.7
        async with running_scheduler(job(schedule="10s"), now=start) as harness:
            harness.sleep_for(0.3)
            await harness.clock.advance(DAY + 1)
            assert harness.times == [start + 10.0 * count for count in range(1, DAY // 10 + 1)]

    async def test_interval_does_not_drift_in_a_year(self) -> None:
        async with running_scheduler(job(schedule="6h"), now=0.25) as harness:
            harness.sleep_for(1800)
            await harness.clock.advance(365 * DAY + 1)
            assert harness.times == [0.25 + 21600.0 * count for count in range(1, 365 * 4 + 1)]


class TestCronJobs:
    async def test_cron_job_is_due_by_the_wall_clock(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="*/15 * * * *"), now=noon + 100) as harness:
            await harness.clock.advance(3600)
            assert harness.times == [noon + 900, noon + 1800, noon + 2700, noon + 3600]

    @pytest.mark.parametrize(
        ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-05-01", 24)]
    )
    async def test_cron_job_on_days_of_clock_changes(self, day: str, hours: int) -> None:
        midnight = berlin(f"{day} 00:00")
        jobs = job("often", "*/15 * * * *"), job("early", "30 2 * * *")
        async with running_scheduler(*jobs, now=midnight) as harness:
            await harness.clock.advance(hours * 3600)
            often = [moment for name, moment in harness.runs if name == "often"]
            assert often == [midnight + 900 * count for count in range(1, hours * 4 + 1)]
            assert len(harness.runs) - len(often) == 1

    async def test_due_times_during_a_run_are_skipped(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "rdk.job_manager")
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="* * * * *"), now=noon) as harness:
            harness.sleep_for(150)
            await harness.clock.advance(60 + 150 + 29)
            harness.sleep_for(1)
            await harness.clock.advance(121)
            assert harness.times == [noon + 60, noon + 240, noon + 300, noon + 360]
            assert harness.record().skipped == 2
        assert "skipped 2 runs: the previous run had not finished" in caplog.messages

    async def test_wall_clock_set_forward_is_detected(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="0 * * * *"), now=noon) as harness:
            await harness.clock.advance(60)
            harness.clock.jump = 3500
            await harness.clock.advance(40)
            assert harness.times == [noon + 3600]

    async def test_jumped_due_time_is_made_up_for_once(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="*/15 * * * *"), now=noon) as harness:
            await harness.clock.advance(60)
            harness.clock.jump = 3600
            await harness.clock.advance(30)
            assert len(harness.runs) == 1
            await harness.clock.advance(900)
            assert harness.times[1:] == [noon + 3600 + 900]

    async def test_initial_clock_correction_makes_up_for_nothing(self) -> None:
        async with running_scheduler(job(schedule="0 3 * * *"), now=0.0) as harness:
            await harness.clock.advance(60)
            harness.clock.jump = berlin("2026-05-01 12:00") - 60
            await harness.clock.advance(3600)
            assert harness.runs == []
            await harness.clock.advance(14 * 3600)
            assert harness.times == [berlin("2026-05-02 03:00")]

    async def test_wall_clock_set_back_is_followed(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="*/15 * * * *"), now=noon) as harness:
            await harness.clock.advance(60)
            harness.clock.jump = -3600
            await harness.clock.advance(900)
            assert harness.times == [noon - 3600 + 900]

    async def test_small_step_back_does_not_repeat_a_run(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with running_scheduler(job(schedule="*/15 * * * *"), now=noon) as harness:
            await harness.clock.advance(900)
            harness.clock.jump = -2.0
            await harness.clock.advance(600)
            assert harness.times == [noon + 900]

    async def test_default_zone_is_the_local_zone(self) -> None:
        harness = SchedulerHarness(berlin("2026-05-01 12:00"), zone=None)
        harness.jobs.apply([job(schedule="* * * * *")])
        await harness.clock.advance(60)
        assert harness.times == [berlin("2026-05-01 12:01")]
        await harness.jobs.aclose()


class TestContinuousJobs:
    async def test_continuous_job_runs_again_at_once(self) -> None:
        async with running_scheduler(job(schedule="continuous")) as harness:
            harness.sleep_for(2)
            await harness.clock.advance(9)
            assert harness.times == pytest.approx([0, 2, 4, 6, 8], abs=0.01)

    async def test_short_continuous_runs_have_pauses(self) -> None:
        async with running_scheduler(job(schedule="continuous")) as harness:
            await harness.clock.advance(1)
            assert 500 < len(harness.runs) <= 1001

    @pytest.mark.parametrize("count", [1, 20])
    async def test_blocking_jobs_leave_time_for_others(self, count: int) -> None:
        """Each run blocks the loop for 10 ms."""
        jobs = [job(f"j{number}", schedule="continuous") for number in range(count)]
        async with running_scheduler(*jobs) as harness:
            harness.block_for(0.01)
            started = harness.clock.monotonic()
            await harness.clock.advance(20)
            passed = harness.clock.monotonic() - started
            assert 0.1 < len(harness.runs) * 0.01 / passed < 0.5
            assert {name for name, _ in harness.runs} == {each.name for each in jobs}

    async def test_failing_continuous_job_backs_off(self) -> None:
        async with running_scheduler(job(schedule="continuous")) as harness:
            harness.fail_with(CogworkError("no"))
            await harness.clock.advance(40)
            pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
            expected = [round(sum(pauses[:count]), 6) for count in range(len(pauses) + 1)]
            assert [round(moment, 6) for moment in harness.times] == expected

    async def test_success_resets_the_back_off(self) -> None:
        async with running_scheduler(job(schedule="continuous")) as harness:
            harness.fail_with(CogworkError("no"))
            await harness.clock.advance(3)
            harness.sleep_for(3)
            await harness.clock.advance(1)
            harness.fail_with(CogworkError("no"))
            await harness.clock.advance(2.3)
            worked, failed, again = harness.times[-3:]
            assert failed - worked == pytest.approx(3, abs=0.01)
            assert again - failed == pytest.approx(0.1, abs=0.01)


class TestJobRecords:
    async def test_record_keeps_the_last_ten_successes_and_failures(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            await harness.clock.advance(120)
            harness.fail_with(CogworkError("the lid is open"))
            await harness.clock.advance(130)
            record = harness.record()
            assert record.successes == tuple(range(30, 121, 10))
            assert record.failures == tuple(
                JobFailure(moment, "the lid is open") for moment in range(160, 251, 10)
            )

    async def test_failure_is_logged_and_the_job_continues(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running_scheduler(job("tick")) as harness:
            harness.fail_with(CogworkError("the lid is open"))
            await harness.clock.advance(10)
            harness.behavior = None
            await harness.clock.advance(10)
            assert harness.record("tick").successes == (20,)
        assert caplog.record_tuples == [
            ("rdk.job_manager.tick", logging.WARNING, "failed: the lid is open")
        ]

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (KeyError("fps"), "KeyError: 'fps'"),
            (RuntimeError, "RuntimeError"),
            (GRPCError(Status.UNAVAILABLE, "gone"), "gone"),
            (GRPCError(Status.UNAVAILABLE), "UNAVAILABLE"),
            (ResourceNotFoundError("arm", "a"), 'No arm with name "a" found in the registry'),
            (TimeoutError("it took too long"), "it took too long"),
            (asyncio.CancelledError(), "it was cancelled by the resource itself"),
            (SystemExit(3), "it called sys.exit(3)"),
            (RuntimeError("x" * 5000), "x" * 1000),
        ],
    )
    async def test_failure_reason_describes_the_error(
        self, error: BaseException, reason: str
    ) -> None:
        async with running_scheduler(job()) as harness:
            harness.fail_with(error)
            await harness.clock.advance(10)
            assert [each.reason for each in harness.record().failures] == [reason]

    async def test_failure_reason_of_an_unprintable_error(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError

        async with running_scheduler(job()) as harness:
            harness.fail_with(Mute())
            await harness.clock.advance(20)
            assert harness.record().failures[0].reason == "Mute (its message cannot be rendered)"
            assert len(harness.runs) == 2

    async def test_records_of_removed_jobs_are_kept(self) -> None:
        async with running_scheduler(job("a"), job("b")) as harness:
            await harness.clock.advance(10)
            harness.jobs.apply([job("b")])
            await harness.clock.advance(10)
            assert (harness.record("a").configured, harness.record("a").successes) == (False, (10,))
            assert (harness.record("b").configured, harness.record("b").successes) == (
                True,
                (10, 20),
            )
            harness.jobs.apply([job("a")])
            await harness.clock.advance(10)
            assert harness.record("a").successes == (10, 30)

    async def test_number_of_records_is_limited(self) -> None:
        async with running_scheduler(job("stays")) as harness:
            for turn in range(12):
                harness.jobs.apply([job("stays"), *(job(f"{turn}-{n}") for n in range(100))])
            names = [each.name for each in harness.jobs.statuses()]
            assert len(names) == 1000
            assert "stays" in names
            assert "0-0" not in names
            assert "11-99" in names


class TestNextRun:
    async def test_interval_job_is_due_after_its_interval(self) -> None:
        async with running_scheduler(job(schedule="10s"), now=1000.0) as harness:
            await harness.clock.advance(3)
            assert harness.record().next_run == 1010
            assert harness.record().schedule == "10s"
            assert harness.record().running_since is None
            await harness.clock.advance(8)
            assert harness.record().next_run == 1020

    async def test_interval_job_keeps_its_delay_when_the_wall_clock_is_set(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            await harness.clock.advance(3)
            harness.clock.jump = 5000
            assert harness.record().next_run == 5010

    async def test_cron_job_is_due_at_its_wall_time(self) -> None:
        start = berlin("2026-03-01 11:50")
        async with running_scheduler(job(schedule="0 12 * * *"), now=start) as harness:
            await harness.clock.advance(1)
            assert harness.record().next_run == berlin("2026-03-01 12:00")
            harness.clock.jump = 60
            assert harness.record().next_run == berlin("2026-03-01 12:00")
            await harness.clock.advance(3600)
            assert harness.record().next_run == berlin("2026-03-02 12:00")

    async def test_running_job_says_since_when(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(3)
            await harness.clock.advance(11)
            assert (harness.record().running_since, harness.record().next_run) == (10, None)
            await harness.clock.advance(3)
            assert (harness.record().running_since, harness.record().next_run) == (None, 20)

    async def test_continuous_job_has_no_next_run(self) -> None:
        async with running_scheduler(job(schedule="continuous")) as harness:
            await harness.clock.advance(1)
            assert harness.record().next_run is None

    async def test_removed_job_has_neither_schedule_nor_next_run(self) -> None:
        async with running_scheduler(job("a", "10s")) as harness:
            await harness.clock.advance(1)
            harness.jobs.apply([])
            await harness.clock.advance(1)
            assert (harness.record("a").schedule, harness.record("a").next_run) == (None, None)


class TestDeadlines:
    async def test_run_is_cancelled_after_ten_minutes(self) -> None:
        async with running_scheduler(job(schedule="5m")) as harness:
            harness.behavior = wait_forever
            await harness.clock.advance(300 + 599)
            assert harness.record().failures == ()
            await harness.clock.advance(1)
            assert harness.record().failures == (JobFailure(900, "it was cancelled after 10m0s"),)
            assert harness.times == [300, 900]

    async def test_next_run_waits_for_a_run_that_ignores_cancellation(self) -> None:
        released = asyncio.Event()

        async with running_scheduler(job(schedule="1m")) as harness:
            harness.behavior = lambda: ignore_cancellation(released)
            await harness.clock.advance(3600)
            assert harness.times == [60]
            assert [each.reason for each in harness.record().failures] == [
                "it was cancelled after 10m0s but has not ended; its next run waits for that"
            ]
            harness.sleep_for(1)
            released.set()
            await harness.clock.advance(1)
            assert harness.times == [60, 3600]


class TestApply:
    async def test_unchanged_job_keeps_its_due_times(self) -> None:
        async with running_scheduler(job("a")) as harness:
            await harness.clock.advance(7)
            harness.jobs.apply([job("a"), job("b")])
            await harness.clock.advance(14)
            assert harness.runs == [("a", 10), ("b", 17), ("a", 20)]

    async def test_changed_log_level_does_not_restart_the_job(self) -> None:
        async with running_scheduler(job()) as harness:
            await harness.clock.advance(7)
            harness.jobs.apply([job(log_configuration={"level": "debug"})])
            await harness.clock.advance(3)
            assert harness.times == [10]

    async def test_changed_job_restarts(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            await harness.clock.advance(7)
            harness.jobs.apply([job(schedule="5s")])
            await harness.clock.advance(10)
            assert harness.times == [12, 17]

    async def test_run_of_a_removed_job_is_cancelled(self) -> None:
        async with running_scheduler(job()) as harness:
            harness.behavior = wait_forever
            await harness.clock.advance(10)
            assert harness.running == 1
            harness.jobs.apply([])
            await harness.clock.settle()
            assert harness.running == 0
            await harness.clock.advance(100)
            assert len(harness.runs) == 1
            assert (harness.record().successes, harness.record().failures) == ((), ())

    async def test_changed_job_waits_for_the_cleanup_of_its_run(self) -> None:
        async def end_slowly() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await harness.clock.sleep(3)

        async with running_scheduler(job(schedule="10s")) as harness:
            harness.behavior = end_slowly
            await harness.clock.advance(10)
            for second in range(2):
                harness.jobs.apply([job(schedule="continuous", method=f"Other{second}")])
            harness.behavior = None
            harness.sleep_for(5)
            await harness.clock.advance(2)
            assert harness.times == [10]
            await harness.clock.advance(2)
            assert harness.times == [10, 13]
            assert harness.max_running == 1

    async def test_waiting_for_a_cancelled_run_is_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        released = asyncio.Event()
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.behavior = lambda: ignore_cancellation(released)
            await harness.clock.advance(10)
            harness.jobs.apply([job(schedule="5s")])
            await harness.clock.advance(20)
            assert harness.times == [10]
            assert caplog.messages == ["waiting for a cancelled run that has not ended"]
            harness.behavior = None
            released.set()
            await harness.clock.advance(5)
            assert harness.times == [10, 35]

    async def test_job_added_and_removed_in_one_turn_never_runs(self) -> None:
        async with running_scheduler() as harness:
            harness.jobs.apply([job("a", "continuous")])
            harness.jobs.apply([])
            await harness.clock.settle()
            assert harness.runs == []


class TestClose:
    async def test_close_cancels_and_awaits_runs(self) -> None:
        harness = SchedulerHarness()
        ended: list[float] = []

        async def end_slowly() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await harness.clock.sleep(3)
                ended.append(harness.clock.time())

        harness.behavior = end_slowly
        harness.jobs.apply([job("a"), job("b"), job("c", "1h"), job("d", "* * * * *")])
        await harness.clock.advance(10)
        closing = asyncio.ensure_future(harness.jobs.aclose())
        await harness.clock.advance(2.9)
        assert not closing.done()
        await harness.clock.advance(0.1)
        assert closing.result() == []
        assert ended == [13, 13]

    async def test_close_names_jobs_that_do_not_end(self) -> None:
        harness = SchedulerHarness()
        released = asyncio.Event()
        harness.behavior = lambda: ignore_cancellation(released)
        harness.jobs.apply([job("a")])
        await harness.clock.advance(10)
        closing = asyncio.ensure_future(harness.jobs.aclose())
        await harness.clock.advance(10)
        assert closing.result() == ["a"]
        released.set()
        await harness.clock.settle()
        assert await harness.jobs.aclose() == []

    async def test_close_without_jobs(self) -> None:
        assert await SchedulerHarness().jobs.aclose() == []


class TestRunsOnRequest:
    async def test_job_runs_at_once_and_keeps_its_schedule(self) -> None:
        async with running_scheduler(job(schedule="60s")) as harness:
            outcome = await harness.jobs.run_now("j", "someone")
            assert outcome.reason is None
            assert harness.record().successes == (0.0,)
            await harness.clock.advance(60)
            assert harness.times == [0, 60]

    async def test_schedule_waits_for_a_requested_run(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(15)
            request = asyncio.create_task(harness.jobs.run_now("j", "someone"))
            await harness.clock.advance(14)
            assert harness.times == [0]
            await harness.clock.advance(1)
            assert (await request).seconds == 15
            assert harness.times == [0, 15]
            assert harness.max_running == 1

    async def test_schedule_waits_for_each_of_several_requested_runs(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def request_twice() -> None:
            for _ in range(2):
                await harness.jobs.run_now("j", "someone")

        async with running_scheduler(job(schedule="10s")) as harness:
            harness.sleep_for(15)
            requests = asyncio.create_task(request_twice())
            await harness.clock.advance(31)
            await requests
            assert harness.times == [0, 15, 30]
            assert harness.max_running == 1
        assert caplog.messages == []

    async def test_cron_job_skips_what_is_due_during_a_requested_run(self) -> None:
        async with running_scheduler(job(schedule="* * * * *")) as harness:
            harness.sleep_for(70)
            request = asyncio.create_task(harness.jobs.run_now("j", "someone"))
            await harness.clock.advance(100)
            assert (await request).reason is None
            assert (harness.times, harness.record().skipped) == ([0], 1)

    async def test_running_job_is_not_run_again(self) -> None:
        async with running_scheduler(job(schedule="10s")) as harness:
            harness.behavior = wait_forever
            first = asyncio.create_task(harness.jobs.run_now("j", "someone"))
            await harness.clock.settle()
            with pytest.raises(StillRunning, match='job "j" is running; run it again'):
                await harness.jobs.run_now("j", "someone")
            harness.jobs.apply([])
            with pytest.raises(Interrupted, match="removed or changed"):
                await first
            assert harness.running == 0

    async def test_stopping_machine_runs_no_job_and_says_why(self) -> None:
        async with running_scheduler(job(schedule="60s")) as harness:
            await harness.jobs.aclose()
            with pytest.raises(Stopping, match="the machine is stopping; try again"):
                await harness.jobs.run_now("j", "someone")

    async def test_run_goes_on_without_the_one_who_asked(self) -> None:
        async with running_scheduler(job(schedule="60s")) as harness:
            harness.sleep_for(5)
            request = asyncio.create_task(harness.jobs.run_now("j", "someone"))
            await harness.clock.advance(1)
            request.cancel()
            await asyncio.wait({request})
            await harness.clock.advance(4)
            assert harness.record().successes == (5.0,)
