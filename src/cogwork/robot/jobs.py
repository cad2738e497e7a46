"""Methods that are called on a schedule, each job by a loop of its own and never twice at once.

A cron line that comes due while its job runs is left out; an interval that does is made up for
right after, once. Whatever goes wrong is a warning, and the job goes on.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

from grpclib import GRPCError

from cogwork.config.schedule import Continuous, Cron, Every, LocalZone, Schedule, read_schedule
from cogwork.config.schema import JobConfig
from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.logs.rules import JOBS

LONGEST_RUN = 600.0
"""Seconds a run may take."""

Call = Callable[[JobConfig], Awaitable[None]]
"""Does once what a job is for."""

_GRACE = 10.0
"""Seconds that a run gets to end after it was cancelled."""
_LOOK = 30.0
"""Seconds until the wall clock is looked at again: somebody may set it."""
_SET_BACK = 60.0
"""Seconds of a step back from which on the wall clock was set; a smaller one repeats nothing."""
_SET_FORWARD = 3 * 3600.0
"""Seconds from which on a moment was not missed, but never was: the wall clock had been wrong."""
_BREATH = 0.001
"""Seconds between two runs of a job that runs all the time: one that does little is not to take a
whole core."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
"""Seconds between a failure and the next run of a job that runs all the time."""
_RUNS_KEPT = 10
_NAMES_KEPT = 1000
_MOST_COUNTED = 1000
_LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class Failure:
    time: float
    reason: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    """How a job did lately, the oldest first. Times are seconds since 1970, at the end of a run."""

    name: str
    configured: bool
    """Also of a job that was taken out, it is still known how it did."""
    successes: tuple[float, ...]
    failures: tuple[Failure, ...]
    skipped: int
    """How often it came due while it ran, and was left out."""


@dataclass(slots=True)
class _History:
    successes: deque[float] = field(default_factory=lambda: deque(maxlen=_RUNS_KEPT))
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=_RUNS_KEPT))
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    config: JobConfig
    loop: asyncio.Task[None]


class Jobs:
    def __init__(self, clock: Clock, call: Call, zone: tzinfo | None = None) -> None:
        """Cron lines follow the zone, by default that of this computer."""
        self._clock = clock
        self._call = call
        self._zone = zone or LocalZone()
        self._jobs: dict[str, _Job] = {}
        self._runs: dict[str, asyncio.Task[None]] = {}
        """Also those of jobs that are gone, until they have ended."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._histories: dict[str, _History] = {}

    def retire(self, configs: Sequence[JobConfig]) -> None:
        """End those that are not among these, or are to be others. None is started yet."""
        wanted = {config.name: config for config in configs}
        for name, job in tuple(self._jobs.items()):
            if name not in wanted or _deed(wanted[name]) != _deed(job.config):
                del self._jobs[name]
                job.loop.cancel()

    def apply(self, configs: Sequence[JobConfig]) -> None:
        """From now on these. A job that stays as it is keeps its rhythm."""
        self.retire(configs)
        wanted = {config.name: config for config in configs}
        for config in wanted.values():
            if config.name not in self._jobs:
                self._start(config)
        self._forget()

    def statuses(self) -> list[JobRecord]:
        return [
            JobRecord(
                name,
                name in self._jobs,
                tuple(history.successes),
                tuple(history.failures),
                history.skipped,
            )
            for name, history in self._histories.items()
        ]

    async def aclose(self) -> list[str]:
        """End them all. Returns those with a run that does not let itself be ended."""
        for job in self._jobs.values():
            job.loop.cancel()
        self._jobs.clear()
        deadline = self._clock.monotonic() + _GRACE
        while self._tasks and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.wait(self._tasks, left)
        return list(self._runs)

    def _start(self, config: JobConfig) -> None:
        self._histories.setdefault(config.name, _History())
        loop = self._own(self._keep(config, read_schedule(config.schedule)), f"job {config.name}")
        loop.add_done_callback(_must_not_fail)
        self._jobs[config.name] = _Job(config, loop)

    def _forget(self) -> None:
        """The oldest of those that are gone, when there are too many."""
        gone = [name for name in self._histories if name not in self._jobs]
        for name in gone[: max(0, len(self._histories) - _NAMES_KEPT)]:
            del self._histories[name]

    async def _keep(self, config: JobConfig, schedule: Schedule) -> None:
        if (earlier := self._runs.get(config.name)) is not None:
            await self._let_end(config.name, earlier)
        match schedule:
            case Every():
                await self._keep_interval(config, schedule)
            case Cron():
                await self._keep_cron(config, schedule)
            case Continuous():
                await self._keep_running(config)

    async def _let_end(self, name: str, earlier: asyncio.Task[None]) -> None:
        """A run of the configuration before, which was cancelled."""
        await self._clock.wait({earlier}, _GRACE)
        if not earlier.done():
            _logger(name).warning("waits for a run that does not end")
            # However long it takes: two at once would be worse.
            await asyncio.wait({earlier})

    async def _keep_interval(self, config: JobConfig, every: Every) -> None:
        start = self._clock.monotonic()
        due = every.next(start, start)
        while True:
            while (left := due - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            await self._run(config)
            due = max(every.next(due, start), every.latest(self._clock.monotonic(), start))

    async def _keep_cron(self, config: JobConfig, cron: Cron) -> None:
        done_until = self._clock.time()
        while True:
            due = await self._cron_due(cron, done_until)
            now = self._clock.time()
            if now - due < _SET_FORWARD:
                await self._run(config)
                now = self._clock.time()
                self._skip(config.name, self._dues(cron, due, now))
            done_until = max(due, now)

    async def _cron_due(self, cron: Cron, after: float) -> float:
        """Returns when the wall clock has reached the moment, however it got there."""
        due = cron.next(after, self._zone)
        while (left := due - (now := self._clock.time())) > 0:
            if now < after - _SET_BACK:
                after, due = now, cron.next(now, self._zone)
            else:
                await self._clock.sleep(min(left, _LOOK))
        return due

    def _dues(self, cron: Cron, after: float, until: float) -> Iterator[float]:
        while (after := cron.next(after, self._zone)) <= until:
            yield after

    def _skip(self, name: str, moments: Iterator[float]) -> None:
        # If the wall clock was set meanwhile, there may be millions.
        skipped = sum(1 for _ in itertools.islice(moments, _MOST_COUNTED))
        if skipped:
            self._histories[name].skipped += skipped
            _logger(name).debug("came due %d times while it ran; left out", skipped)

    async def _keep_running(self, config: JobConfig) -> None:
        pause = 0.0
        while True:
            done = await self._run(config)
            pause = 0.0 if done else min(max(_FIRST_PAUSE, 2 * pause), _LONGEST_PAUSE)
            await self._clock.sleep(pause or _BREATH)

    async def _run(self, config: JobConfig) -> bool:
        """Whether it went well."""
        name = config.name
        started = self._clock.monotonic()
        run = self._runs[name] = self._own(_contained(self._call, config), f"run of job {name}")
        run.add_done_callback(lambda run: self._ended(name, run))
        try:
            await self._clock.wait({run}, LONGEST_RUN)
        finally:
            overdue = not run.done()
            run.cancel()
        if overdue:
            await self._clock.wait({run}, _GRACE)
        reason = _overdue_reason(run) if overdue else _reason(run)
        self._note(name, reason, self._clock.monotonic() - started)
        if not run.done():
            await asyncio.wait({run})
        return reason is None

    def _note(self, name: str, reason: str | None, seconds: float) -> None:
        history, now = self._histories[name], self._clock.time()
        if reason is None:
            history.successes.append(now)
            _logger(name).debug("done in %gs", round(seconds, 3))
        else:
            history.failures.append(Failure(now, reason))
            _logger(name).warning("failed: %s", reason)

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, name: str, run: asyncio.Task[None]) -> None:
        del self._runs[name]
        if not run.cancelled() and (error := run.exception()) is not None:
            _logger(name).debug("what it failed with", exc_info=error)


def _must_not_fail(loop: asyncio.Task[None]) -> None:
    if not loop.cancelled() and (error := loop.exception()) is not None:
        _log.critical("%s stopped working", loop.get_name(), exc_info=error)


_log = logging.getLogger(JOBS.removesuffix("."))


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(JOBS + name)


def _deed(config: JobConfig) -> JobConfig:
    """Without what is no reason to start anew."""
    return config.model_copy(update={"log_configuration": None})


async def _contained(call: Call, config: JobConfig) -> None:
    """A driver that exits takes the process with it, unless it is stopped here."""
    try:
        await call(config)
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from None


def _overdue_reason(run: asyncio.Task[None]) -> str:
    limit = f"it was ended after {duration.render(LONGEST_RUN)}"
    return limit if run.done() else f"{limit}, but does not end; it is not called again before"


def _reason(run: asyncio.Task[None]) -> str | None:
    """Why it failed, if it did."""
    if run.cancelled():
        return "it was cancelled by the resource itself"
    error = run.exception()
    return _words_of(error)[:_LONGEST_REASON] if error is not None else None


def _words_of(error: BaseException) -> str:
    kind = type(error).__name__
    told = getattr(error, "grpc_error", error)
    try:
        text = str(told.message or told.status.name if isinstance(told, GRPCError) else error)
    except Exception:
        return f"{kind}, which cannot be put into words"
    # Of a mistake in the code, the text alone ("'fps'") says nothing.
    foreseen = isinstance(told, GRPCError | CogworkError | TimeoutError | NotImplementedError)
    return text if foreseen and text else f"{kind}: {text}".removesuffix(": ")
