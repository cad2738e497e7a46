"""Execution of plans: at most one runs for each base."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from viam.proto.common import Pose
from viam.proto.service.motion import PlanState

from cogwork.core.clock import Clock
from cogwork.drivers.motion.base_drive import DriveSettings, FindBase, Locator, drive_to_goal
from cogwork.drivers.motion.plan_history import MotionExecution, PlanHistory
from cogwork.wire.table.status import status_of

_STOP_TIMEOUT = 10.0
"""Seconds that a base has to stop."""


@dataclass(frozen=True, slots=True)
class _PlanRun:
    """A running plan."""

    execution: MotionExecution
    task: asyncio.Task[None]


class PlanRunner:
    """Executes plans and records them. A newer plan for a base stops the older one."""

    def __init__(self, clock: Clock, logger: logging.Logger) -> None:
        self._clock = clock
        self._logger = logger
        self.history = PlanHistory(clock)
        self._runs: dict[str, _PlanRun] = {}
        """The newest run of each component."""
        self._tasks: set[asyncio.Task[None]] = set()

    def list_active(self) -> list[str]:
        """Return the names of the components with an active plan, in order."""
        return sorted(name for name, run in self._runs.items() if run.execution.is_active)

    def start(
        self,
        component: str,
        steps: Sequence[Pose],
        find: FindBase,
        locator: Locator,
        settings: DriveSettings,
    ) -> str:
        """Start a plan and return the ID of its execution."""
        before = self._runs.get(component)
        if before is not None:
            self._cancel(before, "replaced by a newer plan")
        execution = self.history.begin(component, steps)
        plan = self._execute(execution, find, locator, settings, before.task if before else None)
        # Use an empty context: the plan outlives the call, and should not keep objects of the call
        # alive.
        task = asyncio.get_running_loop().create_task(plan, context=contextvars.Context())
        self._runs[component] = _PlanRun(execution, task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return execution.id

    async def stop(self, component: str, reason: str) -> None:
        """Stop the newest plan of a component, and wait until its base has stopped."""
        run = self._runs.get(component)
        if run is not None:
            await self._stop([run], reason)

    async def stop_all(self, reason: str) -> None:
        await self._stop(self._runs.values(), reason)

    async def aclose(self, reason: str) -> None:
        await self.stop_all(reason)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_TIMEOUT)

    async def _execute(
        self,
        execution: MotionExecution,
        find: FindBase,
        locator: Locator,
        settings: DriveSettings,
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before], timeout=_STOP_TIMEOUT)
        try:
            await drive_to_goal(find, locator, settings, self._clock)
        except Exception as error:
            _, message = status_of(error, "the plan")
            self._logger.warning(
                'component "%s" did not reach its destination: %s', execution.component, message
            )
            self.history.end(execution, PlanState.PLAN_STATE_FAILED, message)
        else:
            self.history.end(execution, PlanState.PLAN_STATE_SUCCEEDED)

    async def _stop(self, runs: Iterable[_PlanRun], reason: str) -> None:
        """Cancel the runs and wait until their bases have stopped."""
        stopped = list(runs)
        for run in stopped:
            self._cancel(run, reason)
        tasks = [run.task for run in stopped if not run.task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_TIMEOUT)

    def _cancel(self, run: _PlanRun, reason: str) -> None:
        self.history.end(run.execution, PlanState.PLAN_STATE_STOPPED, reason)
        run.task.cancel()
