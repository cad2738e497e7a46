"""Runs jobs: methods that are called on a schedule. Runs of the same job never overlap.

If a job is due while it still runs, a cron job skips that run, and an interval job runs again right
afterwards. A failed run is logged as a warning, and the job continues.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from typing import Any, TypeVar

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.config.schema.machine import JobConfig
from cogwork.config.schema.schedule import (
    Continuous,
    Cron,
    Every,
    LocalZone,
    Schedule,
    parse_schedule,
)
from cogwork.core import duration
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.errors import CogworkError, Interrupted, NotFound
from cogwork.core.exit_trap import trap_exit
from cogwork.core.limits.loop_budget import LoopBudget, LoopMeter
from cogwork.logs.logger_names import JOB_LOGGER_PREFIX
from cogwork.robot.jobs.job_record import JobFailure, JobOutcome, JobRecord
from cogwork.robot.unavailable import Stopping

MAX_RUN_SECONDS = 600.0
"""Timeout of a run in seconds."""

T = TypeVar("T")
JobCall = Callable[[JobConfig], Awaitable[None]]
"""A function that runs a job once."""

_CANCEL_GRACE = 10.0
"""Seconds that a cancelled run has to end."""
_CLOCK_CHECK_INTERVAL = 30.0
"""Maximum seconds between two checks of the wall clock, which the user may set at any time."""
_CLOCK_SET_BACK = 60.0
"""If the wall clock goes back by more than this many seconds, it was set, and the next run is
scheduled from the new time. After a smaller step back, no run is repeated."""
_CLOCK_SET_FORWARD = 3 * 3600.0
"""A run that is overdue by more than this many seconds is skipped: the wall clock was wrong and has
been set forward."""
_MIN_PAUSE = 0.001
"""Minimum seconds between two runs of a continuous job, so that a short job does not use a whole
core."""
_RETRY = RetryPolicy(first=0.1, maximum=10.0, jitter=0.0)
"""Back-off after a failed run of a continuous job."""
_MAX_RUNS_KEPT = 10
_MAX_HISTORIES = 1000
_MAX_SKIPS_COUNTED = 1000
_MAX_REASON_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class _Run:
    task: asyncio.Task[None]
    since: float
    """Monotonic start time."""


@dataclass(slots=True)
class _History:
    successes: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_RUNS_KEPT))
    failures: deque[JobFailure] = field(default_factory=lambda: deque(maxlen=_MAX_RUNS_KEPT))
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    config: JobConfig
    loop: asyncio.Task[None]


class StillRunning(CogworkError):
    """The job cannot run, because it is running."""

    status = "FAILED_PRECONDITION"


class JobScheduler:
    def __init__(
        self,
        clock: Clock,
        call: JobCall,
        zone: tzinfo | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Create a scheduler without jobs.

        `zone` is the time zone of cron schedules, by default this computer's. `redact` removes
        secrets from error messages.
        """
        self._clock = clock
        self._call = call
        self._redact = redact
        self._zone = zone or LocalZone()
        self._is_closed = False
        self._jobs: dict[str, _Job] = {}
        self._runs: dict[str, _Run] = {}
        """Current runs by job, including runs of removed jobs until they end."""
        self._due: dict[str, Callable[[], float]] = {}
        """Functions that return the wall clock time of the next run, by waiting job."""
        self._requested: dict[str, asyncio.Task[JobOutcome]] = {}
        """Runs that a client asked for, by job."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._histories: dict[str, _History] = {}
        self._budget = LoopBudget(clock)
        """Event loop time that continuous and interval jobs share."""

    def stop_outdated(self, configs: Sequence[JobConfig]) -> None:
        """Stop the jobs that `configs` removes or changes. Start none."""
        wanted = {config.name: config for config in configs}
        for name, job in tuple(self._jobs.items()):
            if name not in wanted or _comparable(wanted[name]) != _comparable(job.config):
                del self._jobs[name]
                self._due.pop(name, None)
                job.loop.cancel()
                if (requested := self._requested.get(name)) is not None:
                    requested.cancel()

    def apply(self, configs: Sequence[JobConfig]) -> None:
        """Run these jobs. Unchanged jobs keep their schedule."""
        self.stop_outdated(configs)
        wanted = {config.name: config for config in configs}
        for config in wanted.values():
            if config.name not in self._jobs:
                self._start(config)
        self._prune_histories()

    def statuses(self) -> list[JobRecord]:
        return [
            JobRecord(
                name,
                name in self._jobs,
                tuple(history.successes),
                tuple(history.failures),
                history.skipped,
                self._jobs[name].config.schedule if name in self._jobs else None,
                self._start_of_run(name),
                self._next_run(name),
            )
            for name, history in self._histories.items()
        ]

    def find(self, name: str) -> JobConfig:
        """Return the configuration of a job. Raise NotFound, or Stopping after `aclose`."""
        if self._is_closed:
            raise Stopping
        job = self._jobs.get(name)
        if job is None:
            hint = did_you_mean(name, list(self._jobs)) or "add it to the configuration"
            raise NotFound(f'there is no job "{name}"; {hint}')
        return job.config

    async def run_now(self, name: str, who: str, call: JobCall | None = None) -> JobOutcome:
        """Run a job once, beside its schedule, and return how the run ended.

        The run goes on if the caller is cancelled. `who` asked for it. `call` runs the job;
        by default, the job runs as on its schedule. Raise NotFound, Stopping, or StillRunning if
        the job is running already.
        """
        config = self.find(name)
        if name in self._runs or name in self._requested:
            raise StillRunning(f'job "{name}" is running; run it again when it has ended')
        _logger(name).info("run now, as %s asked for", who)
        task = self._create_task(self._run_once(config, call=call), f"requested run of job {name}")
        self._requested[name] = task
        task.add_done_callback(lambda _: self._requested.pop(name, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise Interrupted(f'job "{name}" was removed or changed while it ran') from None

    def _start_of_run(self, name: str) -> float | None:
        run = self._runs.get(name)
        return self._as_wall_time(run.since) if run is not None else None

    def _next_run(self, name: str) -> float | None:
        due = self._due.get(name)
        return due() if due is not None else None

    def _as_wall_time(self, monotonic: float) -> float:
        return self._clock.time() + (monotonic - self._clock.monotonic())

    async def aclose(self) -> list[str]:
        """Stop all jobs. Return the jobs whose cancelled run did not end in time."""
        self._is_closed = True
        self.stop_outdated([])
        deadline = self._clock.monotonic() + _CANCEL_GRACE
        while self._tasks and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.wait(self._tasks, left)
        return list(self._runs)

    def _start(self, config: JobConfig) -> None:
        self._histories.setdefault(config.name, _History())
        loop = self._create_task(
            self._run_schedule(config, parse_schedule(config.schedule)), f"job {config.name}"
        )
        loop.add_done_callback(_log_loop_failure)
        self._jobs[config.name] = _Job(config, loop)

    def _prune_histories(self) -> None:
        """If there are too many histories, delete histories of removed jobs, oldest first."""
        removed = [name for name in self._histories if name not in self._jobs]
        for name in removed[: max(0, len(self._histories) - _MAX_HISTORIES)]:
            del self._histories[name]

    async def _run_schedule(self, config: JobConfig, schedule: Schedule) -> None:
        if (earlier := self._runs.get(config.name)) is not None:
            await self._wait_for_earlier_run(config.name, earlier.task)
        match schedule:
            case Every():
                await self._run_interval(config, schedule)
            case Cron():
                await self._run_cron(config, schedule)
            case Continuous():
                await self._run_continuously(config)

    async def _wait_for_earlier_run(self, name: str, earlier: asyncio.Task[None]) -> None:
        """Wait until the cancelled run of the previous configuration has ended."""
        await self._clock.wait({earlier}, _CANCEL_GRACE)
        if not earlier.done():
            _logger(name).warning("waiting for a cancelled run that has not ended")
            # Wait without a timeout: two overlapping runs would be worse than a late run.
            await asyncio.wait({earlier})

    async def _run_interval(self, config: JobConfig, every: Every) -> None:
        start = self._clock.monotonic()
        due = every.next(start, start)
        while True:
            self._due[config.name] = partial(self._as_wall_time, due)
            while (left := due - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            self._due.pop(config.name, None)
            await self._wait_for_requested_run(config.name)
            meter = LoopMeter(self._clock)
            await self._run_once(config, meter)
            if (pause := self._budget.spend(meter.seconds)) > 0:
                await self._clock.sleep(pause)
            due = max(every.next(due, start), every.latest(self._clock.monotonic(), start))

    async def _run_cron(self, config: JobConfig, cron: Cron) -> None:
        done_until = self._clock.time()
        while True:
            due = await self._wait_for_cron(config.name, cron, done_until)
            now = self._clock.time()
            if now - due < _CLOCK_SET_FORWARD:
                if await self._wait_for_requested_run(config.name):
                    self._count_skipped(config.name, iter([due]))
                else:
                    await self._run_once(config)
                now = self._clock.time()
                self._count_skipped(config.name, self._due_times(cron, due, now))
            done_until = max(due, now)

    async def _wait_for_cron(self, name: str, cron: Cron, after: float) -> float:
        """Wait until the wall clock reaches the due time, and return the due time. The clock may be
        set meanwhile."""
        due = cron.next(after, self._zone)
        self._due[name] = lambda: due
        while (left := due - (now := self._clock.time())) > 0:
            if now < after - _CLOCK_SET_BACK:
                after, due = now, cron.next(now, self._zone)
            else:
                await self._clock.sleep(min(left, _CLOCK_CHECK_INTERVAL))
        self._due.pop(name, None)
        return due

    def _due_times(self, cron: Cron, after: float, until: float) -> Iterator[float]:
        while (after := cron.next(after, self._zone)) <= until:
            yield after

    def _count_skipped(self, name: str, due_times: Iterator[float]) -> None:
        # Limit the count: setting the wall clock during the run may skip millions of due times.
        skipped = sum(1 for _ in itertools.islice(due_times, _MAX_SKIPS_COUNTED))
        if skipped:
            self._histories[name].skipped += skipped
            _logger(name).debug("skipped %d runs: the previous run had not finished", skipped)

    async def _run_continuously(self, config: JobConfig) -> None:
        backoff = Backoff(_RETRY)
        while True:
            await self._wait_for_requested_run(config.name)
            meter = LoopMeter(self._clock)
            if (await self._run_once(config, meter)).reason is None:
                backoff.reset()
                pause = _MIN_PAUSE
            else:
                pause = backoff.next_delay()
            await self._clock.sleep(max(pause, self._budget.spend(meter.seconds)))

    async def _wait_for_requested_run(self, name: str) -> bool:
        """Wait until the runs that clients asked for have ended. Return whether there were any."""
        has_waited = False
        # Look again after each wait: a client may have asked for another run meanwhile.
        while (run := self._requested.get(name) or self._find_run(name)) is not None:
            await asyncio.wait({run})
            has_waited = True
        return has_waited

    def _find_run(self, name: str) -> asyncio.Task[None] | None:
        run = self._runs.get(name)
        return run.task if run is not None else None

    async def _run_once(
        self, config: JobConfig, meter: LoopMeter | None = None, call: JobCall | None = None
    ) -> JobOutcome:
        """Run a job once. `meter` measures the event loop time of the run."""
        name = config.name
        started = self._clock.monotonic()
        work = _call_trapping_exit(call or self._call, config)
        work = meter.measure(work) if meter is not None else work
        run = self._create_task(work, f"run of job {name}")
        self._runs[name] = _Run(run, started)
        run.add_done_callback(lambda run: self._on_run_end(name, run))
        try:
            await self._clock.wait({run}, MAX_RUN_SECONDS)
        finally:
            overdue = not run.done()
            run.cancel()
        if overdue:
            await self._clock.wait({run}, _CANCEL_GRACE)
        reason = _overdue_reason(run) if overdue else self._failure_reason(run)
        seconds = self._clock.monotonic() - started
        self._record_run(name, reason, seconds)
        if not run.done():
            await asyncio.wait({run})
        return JobOutcome(reason, seconds)

    def _record_run(self, name: str, reason: str | None, seconds: float) -> None:
        history, now = self._histories[name], self._clock.time()
        if reason is None:
            history.successes.append(now)
            _logger(name).debug("finished in %gs", round(seconds, 3))
        else:
            history.failures.append(JobFailure(now, reason))
            _logger(name).warning("failed: %s", reason)

    def _failure_reason(self, run: asyncio.Task[None]) -> str | None:
        """Return why a run failed; None if it succeeded."""
        if run.cancelled():
            return "it was cancelled by the resource itself"
        error = run.exception()
        return self._redact(error_text(error))[:_MAX_REASON_LENGTH] if error is not None else None

    def _create_task(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_run_end(self, name: str, run: asyncio.Task[None]) -> None:
        if self._find_run(name) is run:
            del self._runs[name]
        if not run.cancelled() and (error := run.exception()) is not None:
            _logger(name).debug("traceback of the failure", exc_info=error)


def _log_loop_failure(loop: asyncio.Task[None]) -> None:
    if not loop.cancelled() and (error := loop.exception()) is not None:
        _log.critical("%s stopped unexpectedly", loop.get_name(), exc_info=error)


_log = logging.getLogger(JOB_LOGGER_PREFIX.removesuffix("."))


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(JOB_LOGGER_PREFIX + name)


def _comparable(config: JobConfig) -> JobConfig:
    """Return the configuration without the settings that can change without restarting the job."""
    return config.model_copy(update={"log_configuration": None})


async def _call_trapping_exit(call: JobCall, config: JobConfig) -> None:
    with trap_exit():
        await call(config)


def _overdue_reason(run: asyncio.Task[None]) -> str:
    reason = f"it was cancelled after {duration.render(MAX_RUN_SECONDS)}"
    return reason if run.done() else f"{reason} but has not ended; its next run waits for that"
