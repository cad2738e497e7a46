"""Jobs: who runs when, what becomes of failures, and what a change of the configuration does."""

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
from tests.unit.robot.bench import for_ever, job
from viam.resource.manager import ResourceNotFoundError  # type: ignore[attr-defined]

from cogwork.config.schema import JobConfig
from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError
from cogwork.robot.job_scheduler import JobFailure, JobRecord, JobScheduler

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86400

Deed = Callable[[], Awaitable[None]]


async def test_the_reason_of_a_failure_holds_no_secret() -> None:
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
    """Its wall time may jump; its other one never does."""

    jump = 0.0

    def time(self) -> float:
        return super().time() + self.jump

    def compute(self, seconds: float) -> None:
        self._now += seconds


class Desk:
    """Jobs on a manual clock, which begin at zero unless told otherwise."""

    def __init__(self, now: float = 0.0, zone: tzinfo | None = BERLIN) -> None:
        self.clock = JumpingClock(now)
        self.jobs = JobScheduler(self.clock, self.call, zone)
        self.began: list[tuple[str, float]] = []
        self.under_way = self.most_under_way = 0
        self.deed: Deed | None = None

    async def call(self, config: JobConfig) -> None:
        self.began.append((config.name, self.clock.time()))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.deed is not None:
                await self.deed()
        finally:
            self.under_way -= 1

    @property
    def times(self) -> list[float]:
        return [moment for _, moment in self.began]

    def record(self, name: str = "j") -> JobRecord:
        return next(each for each in self.jobs.statuses() if each.name == name)

    def takes(self, seconds: float) -> None:
        self.deed = lambda: self.clock.sleep(seconds)

    def computes(self, seconds: float) -> None:
        """Keeps the loop busy, without an await."""

        async def compute() -> None:
            self.clock.compute(seconds)

        self.deed = compute

    def fails(self, error: BaseException | type[BaseException]) -> None:
        async def fail() -> NoReturn:
            raise error

        self.deed = fail


@contextlib.asynccontextmanager
async def opened(*configs: JobConfig, now: float = 0.0) -> AsyncIterator[Desk]:
    desk = Desk(now)
    desk.jobs.apply(configs)
    try:
        yield desk
    finally:
        assert await desk.jobs.aclose() == []


async def stubborn(released: asyncio.Event) -> None:
    """Does not let itself be cancelled."""
    while not released.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await released.wait()


class TestIntervals:
    async def test_due_after_each_period_from_the_start(self) -> None:
        async with opened(job(schedule="10s"), now=3.0) as desk:
            await desk.clock.advance(12)
            assert desk.times == [13]
            await desk.clock.advance(28)
            assert desk.times == [13, 23, 33, 43]

    async def test_runs_that_take_a_while_do_not_make_it_drift(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            desk.takes(7)
            await desk.clock.advance(100)
            assert desk.times == list(range(10, 101, 10))

    async def test_what_comes_due_while_it_runs_is_made_up_for_once(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            desk.takes(35)
            await desk.clock.advance(40)
            desk.takes(1)
            await desk.clock.advance(40)
            assert desk.times == [10, 45, 50, 60, 70, 80]
            assert desk.most_under_way == 1

    async def test_one_that_takes_a_whole_period_runs_again_at_once(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            desk.takes(10)
            await desk.clock.advance(55)
            assert desk.times == [10, 20, 30, 40, 50]

    async def test_the_wall_clock_has_no_say(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            await desk.clock.advance(15)
            desk.clock.jump = 1e6
            await desk.clock.advance(10)
            desk.clock.jump = -1e6
            await desk.clock.advance(10)
            assert len(desk.began) == 3

    async def test_together_they_leave_the_loop_to_others(self) -> None:
        """Each run keeps the loop busy for 10 ms, and is due every 10 ms."""
        async with opened(*(job(f"j{number}", schedule="10ms") for number in range(20))) as desk:
            desk.computes(0.01)
            began = desk.clock.monotonic()
            await desk.clock.advance(20)
            passed = desk.clock.monotonic() - began
            assert 0.1 < len(desk.began) * 0.01 / passed < 0.5

    async def test_a_day_of_ticks_without_drift(self) -> None:
        start = 1_000_000.7
        async with opened(job(schedule="10s"), now=start) as desk:
            desk.takes(0.3)
            await desk.clock.advance(DAY + 1)
            assert desk.times == [start + 10.0 * count for count in range(1, DAY // 10 + 1)]

    async def test_a_year_of_shifts_without_drift(self) -> None:
        async with opened(job(schedule="6h"), now=0.25) as desk:
            desk.takes(1800)
            await desk.clock.advance(365 * DAY + 1)
            assert desk.times == [0.25 + 21600.0 * count for count in range(1, 365 * 4 + 1)]


class TestCronLines:
    async def test_due_by_the_wall_clock(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="*/15 * * * *"), now=noon + 100) as desk:
            await desk.clock.advance(3600)
            assert desk.times == [noon + 900, noon + 1800, noon + 2700, noon + 3600]

    @pytest.mark.parametrize(
        ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-05-01", 24)]
    )
    async def test_on_the_days_when_the_clock_is_changed(self, day: str, hours: int) -> None:
        midnight = berlin(f"{day} 00:00")
        jobs = job("often", "*/15 * * * *"), job("early", "30 2 * * *")
        async with opened(*jobs, now=midnight) as desk:
            await desk.clock.advance(hours * 3600)
            often = [moment for name, moment in desk.began if name == "often"]
            assert often == [midnight + 900 * count for count in range(1, hours * 4 + 1)]
            assert len(desk.began) - len(often) == 1

    async def test_what_comes_due_while_it_runs_is_left_out(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "rdk.job_manager")
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="* * * * *"), now=noon) as desk:
            desk.takes(150)
            await desk.clock.advance(60 + 150 + 29)
            desk.takes(1)
            await desk.clock.advance(121)
            assert desk.times == [noon + 60, noon + 240, noon + 300, noon + 360]
            assert desk.record().skipped == 2
        assert "skipped 2 runs: the previous run had not finished" in caplog.messages

    async def test_a_wall_clock_that_is_set_forward_is_noticed(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="0 * * * *"), now=noon) as desk:
            await desk.clock.advance(60)
            desk.clock.jump = 3500
            await desk.clock.advance(40)
            assert desk.times == [noon + 3600]

    async def test_a_moment_that_was_jumped_over_is_made_up_for_once(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="*/15 * * * *"), now=noon) as desk:
            await desk.clock.advance(60)
            desk.clock.jump = 3600
            await desk.clock.advance(30)
            assert len(desk.began) == 1
            await desk.clock.advance(900)
            assert desk.times[1:] == [noon + 3600 + 900]

    async def test_a_clock_that_was_wrong_all_along_made_nobody_miss_anything(self) -> None:
        async with opened(job(schedule="0 3 * * *"), now=0.0) as desk:
            await desk.clock.advance(60)
            desk.clock.jump = berlin("2026-05-01 12:00") - 60
            await desk.clock.advance(3600)
            assert desk.began == []
            await desk.clock.advance(14 * 3600)
            assert desk.times == [berlin("2026-05-02 03:00")]

    async def test_a_wall_clock_that_is_set_back_is_followed(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="*/15 * * * *"), now=noon) as desk:
            await desk.clock.advance(60)
            desk.clock.jump = -3600
            await desk.clock.advance(900)
            assert desk.times == [noon - 3600 + 900]

    async def test_a_small_step_back_repeats_nothing(self) -> None:
        noon = berlin("2026-05-01 12:00")
        async with opened(job(schedule="*/15 * * * *"), now=noon) as desk:
            await desk.clock.advance(900)
            desk.clock.jump = -2.0
            await desk.clock.advance(600)
            assert desk.times == [noon + 900]

    async def test_by_default_it_is_the_time_of_this_computer(self) -> None:
        desk = Desk(berlin("2026-05-01 12:00"), zone=None)
        desk.jobs.apply([job(schedule="* * * * *")])
        await desk.clock.advance(60)
        assert desk.times == [berlin("2026-05-01 12:01")]
        await desk.jobs.aclose()


class TestContinuousOnes:
    async def test_it_runs_again_as_soon_as_it_is_done(self) -> None:
        async with opened(job(schedule="continuous")) as desk:
            desk.takes(2)
            await desk.clock.advance(9)
            assert desk.times == pytest.approx([0, 2, 4, 6, 8], abs=0.01)

    async def test_one_that_does_little_leaves_time_for_others(self) -> None:
        async with opened(job(schedule="continuous")) as desk:
            await desk.clock.advance(1)
            assert 500 < len(desk.began) <= 1001

    @pytest.mark.parametrize("count", [1, 20])
    async def test_together_they_leave_the_loop_to_others(self, count: int) -> None:
        """Each run keeps the loop busy for 10 ms."""
        jobs = [job(f"j{number}", schedule="continuous") for number in range(count)]
        async with opened(*jobs) as desk:
            desk.computes(0.01)
            began = desk.clock.monotonic()
            await desk.clock.advance(20)
            passed = desk.clock.monotonic() - began
            assert 0.1 < len(desk.began) * 0.01 / passed < 0.5
            assert {name for name, _ in desk.began} == {each.name for each in jobs}

    async def test_a_broken_one_does_not_spin(self) -> None:
        async with opened(job(schedule="continuous")) as desk:
            desk.fails(CogworkError("no"))
            await desk.clock.advance(40)
            pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
            expected = [round(sum(pauses[:count]), 6) for count in range(len(pauses) + 1)]
            assert [round(moment, 6) for moment in desk.times] == expected

    async def test_once_it_works_a_failure_is_the_first_again(self) -> None:
        async with opened(job(schedule="continuous")) as desk:
            desk.fails(CogworkError("no"))
            await desk.clock.advance(3)
            desk.takes(3)
            await desk.clock.advance(1)
            desk.fails(CogworkError("no"))
            await desk.clock.advance(2.3)
            worked, failed, again = desk.times[-3:]
            assert failed - worked == pytest.approx(3, abs=0.01)
            assert again - failed == pytest.approx(0.1, abs=0.01)


class TestHistories:
    async def test_the_last_ten_of_each(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            await desk.clock.advance(120)
            desk.fails(CogworkError("the lid is open"))
            await desk.clock.advance(130)
            record = desk.record()
            assert record.successes == tuple(range(30, 121, 10))
            assert record.failures == tuple(
                JobFailure(moment, "the lid is open") for moment in range(160, 251, 10)
            )

    async def test_a_failure_is_a_warning_and_the_job_goes_on(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with opened(job("tick")) as desk:
            desk.fails(CogworkError("the lid is open"))
            await desk.clock.advance(10)
            desk.deed = None
            await desk.clock.advance(10)
            assert desk.record("tick").successes == (20,)
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
    async def test_the_reason_is_said(self, error: BaseException, reason: str) -> None:
        async with opened(job()) as desk:
            desk.fails(error)
            await desk.clock.advance(10)
            assert [each.reason for each in desk.record().failures] == [reason]

    async def test_an_error_without_words(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError

        async with opened(job()) as desk:
            desk.fails(Mute())
            await desk.clock.advance(20)
            assert desk.record().failures[0].reason == "Mute (its message cannot be rendered)"
            assert len(desk.began) == 2

    async def test_jobs_that_are_gone_are_remembered(self) -> None:
        async with opened(job("a"), job("b")) as desk:
            await desk.clock.advance(10)
            desk.jobs.apply([job("b")])
            await desk.clock.advance(10)
            assert (desk.record("a").configured, desk.record("a").successes) == (False, (10,))
            assert (desk.record("b").configured, desk.record("b").successes) == (True, (10, 20))
            desk.jobs.apply([job("a")])
            await desk.clock.advance(10)
            assert desk.record("a").successes == (10, 30)

    async def test_but_not_any_number_of_them(self) -> None:
        async with opened(job("stays")) as desk:
            for turn in range(12):
                desk.jobs.apply([job("stays"), *(job(f"{turn}-{n}") for n in range(100))])
            names = [each.name for each in desk.jobs.statuses()]
            assert len(names) == 1000
            assert "stays" in names
            assert "0-0" not in names
            assert "11-99" in names


class TestDeadlines:
    async def test_a_run_is_ended_after_ten_minutes(self) -> None:
        async with opened(job(schedule="5m")) as desk:
            desk.deed = for_ever
            await desk.clock.advance(300 + 599)
            assert desk.record().failures == ()
            await desk.clock.advance(1)
            assert desk.record().failures == (JobFailure(900, "it was cancelled after 10m0s"),)
            assert desk.times == [300, 900]

    async def test_one_that_does_not_end_is_not_called_again_before(self) -> None:
        released = asyncio.Event()

        async with opened(job(schedule="1m")) as desk:
            desk.deed = lambda: stubborn(released)
            await desk.clock.advance(3600)
            assert desk.times == [60]
            assert [each.reason for each in desk.record().failures] == [
                "it was cancelled after 10m0s but has not ended; its next run waits for that"
            ]
            desk.takes(1)
            released.set()
            await desk.clock.advance(1)
            assert desk.times == [60, 3600]


class TestChangesOfTheConfiguration:
    async def test_one_that_stays_keeps_its_rhythm(self) -> None:
        async with opened(job("a")) as desk:
            await desk.clock.advance(7)
            desk.jobs.apply([job("a"), job("b")])
            await desk.clock.advance(14)
            assert desk.began == [("a", 10), ("b", 17), ("a", 20)]

    async def test_another_level_of_its_log_is_no_reason_to_start_anew(self) -> None:
        async with opened(job()) as desk:
            await desk.clock.advance(7)
            desk.jobs.apply([job(log_configuration={"level": "debug"})])
            await desk.clock.advance(3)
            assert desk.times == [10]

    async def test_one_that_is_changed_starts_anew(self) -> None:
        async with opened(job(schedule="10s")) as desk:
            await desk.clock.advance(7)
            desk.jobs.apply([job(schedule="5s")])
            await desk.clock.advance(10)
            assert desk.times == [12, 17]

    async def test_one_that_is_taken_out_is_ended_while_it_runs(self) -> None:
        async with opened(job()) as desk:
            desk.deed = for_ever
            await desk.clock.advance(10)
            assert desk.under_way == 1
            desk.jobs.apply([])
            await desk.clock.settle()
            assert desk.under_way == 0
            await desk.clock.advance(100)
            assert len(desk.began) == 1
            assert (desk.record().successes, desk.record().failures) == ((), ())

    async def test_a_run_has_time_to_tidy_up_and_its_successor_waits(self) -> None:
        async def sighing() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await desk.clock.sleep(3)

        async with opened(job(schedule="10s")) as desk:
            desk.deed = sighing
            await desk.clock.advance(10)
            for second in range(2):
                desk.jobs.apply([job(schedule="continuous", method=f"Other{second}")])
            desk.deed = None
            desk.takes(5)
            await desk.clock.advance(2)
            assert desk.times == [10]
            await desk.clock.advance(2)
            assert desk.times == [10, 13]
            assert desk.most_under_way == 1

    async def test_a_successor_says_for_what_it_waits(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        released = asyncio.Event()
        async with opened(job(schedule="10s")) as desk:
            desk.deed = lambda: stubborn(released)
            await desk.clock.advance(10)
            desk.jobs.apply([job(schedule="5s")])
            await desk.clock.advance(20)
            assert desk.times == [10]
            assert caplog.messages == ["waiting for a cancelled run that has not ended"]
            desk.deed = None
            released.set()
            await desk.clock.advance(5)
            assert desk.times == [10, 35]

    async def test_apply_starts_and_ends_nothing_before_the_loop_turns(self) -> None:
        async with opened() as desk:
            desk.jobs.apply([job("a", "continuous")])
            desk.jobs.apply([])
            await desk.clock.settle()
            assert desk.began == []


class TestTheEnd:
    async def test_runs_are_ended_and_awaited(self) -> None:
        desk = Desk()
        ended: list[float] = []

        async def sighing() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await desk.clock.sleep(3)
                ended.append(desk.clock.time())

        desk.deed = sighing
        desk.jobs.apply([job("a"), job("b"), job("c", "1h"), job("d", "* * * * *")])
        await desk.clock.advance(10)
        closing = asyncio.ensure_future(desk.jobs.aclose())
        await desk.clock.advance(2.9)
        assert not closing.done()
        await desk.clock.advance(0.1)
        assert closing.result() == []
        assert ended == [13, 13]

    async def test_one_that_does_not_end_is_named(self) -> None:
        desk = Desk()
        released = asyncio.Event()
        desk.deed = lambda: stubborn(released)
        desk.jobs.apply([job("a")])
        await desk.clock.advance(10)
        closing = asyncio.ensure_future(desk.jobs.aclose())
        await desk.clock.advance(10)
        assert closing.result() == ["a"]
        released.set()
        await desk.clock.settle()
        assert await desk.jobs.aclose() == []

    async def test_without_jobs_there_is_nothing_to_end(self) -> None:
        assert await Desk().jobs.aclose() == []
