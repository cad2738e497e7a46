"""The executor of the newest goal: locates the vehicle, plans a path, and follows it."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Callable, Collection

from viam.proto.service.navigation import GoalState, NavErrorCode, Status, Velocity

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, Interrupted
from cogwork.drivers.navigation.coordinates import MapCoordinates, MapPose
from cogwork.drivers.navigation.goal import Goal
from cogwork.drivers.navigation.planned_path import PlannedPath
from cogwork.drivers.navigation.planner import Planner
from cogwork.drivers.navigation.vehicle import LeftPath, NotLocalized, Vehicle
from cogwork.resource.messages.timestamps import to_timestamp
from cogwork.wire.table.status import status_of

STOP_TIMEOUT = 20.0
"""Seconds that the vehicle has to stop. The timeouts of the vehicle itself are shorter."""
MAX_DEVIATIONS = 3
"""Number of times that the vehicle may leave its path without progress before the goal fails."""
MIN_PROGRESS = 1.0
"""Minimum reduction of the remaining path, in meters, that counts as progress."""
MIN_LAP_TIME = 0.1
"""Minimum duration of a lap in seconds. Without it, laps between very close stops would follow each
other without pause, because nothing has to move."""


class NoGoal(CogworkError):
    """There is no goal to suspend or resume."""

    status = "FAILED_PRECONDITION"


class GoalExecutor:
    def __init__(
        self,
        display_name: str,
        vehicle: Vehicle,
        planner: Planner,
        coordinates: MapCoordinates,
        clock: Clock,
        logger: logging.Logger,
    ) -> None:
        self._display_name = display_name
        self._vehicle = vehicle
        self._planner = planner
        self._coordinates = coordinates
        self._clock = clock
        self._logger = logger
        self._goal: Goal | None = None
        self._last_pose: MapPose | None = None
        self._runs: set[asyncio.Task[None]] = set()
        """The run of the current goal, and older ones that are stopping the vehicle."""
        self._changed: asyncio.Future[None] = _new_future()

    @property
    def is_moving(self) -> bool:
        return self._goal is not None and self._goal.is_active

    async def status(self) -> Status:
        """Return the status, with the last known position if the current one is unknown."""
        localized = True
        try:
            self._last_pose = await self._vehicle.locate()
        except NotLocalized:
            localized = False
        goal, pose = self._goal, self._last_pose
        return Status(
            position=None if pose is None else self._coordinates.to_position(pose),
            localized=localized,
            velocity=Velocity(linear_m_per_sec=self._vehicle.speed),
            goal=None if goal is None else goal.status(self._coordinates, pose),
            updated_at=to_timestamp(self._clock.time()),
        )

    async def start(self, goal: Goal) -> None:
        """Replace the current goal and return when its path is planned."""
        await self._vehicle.locate()  # raise NotLocalized before replacing the goal
        if self._goal is not None:
            self._goal.plan = None
        self._goal = goal
        if goal.given_path is None:
            self._launch(goal, NavErrorCode.NAV_ERROR_CODE_NO_PATH)
        else:
            self._launch(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED, detours=False)
        await self._wait_for(goal, lambda: goal.plan is not None or not goal.is_active)

    async def wait_until_ended(self, goal: Goal) -> None:
        await self._wait_for(goal, lambda: goal.has_ended)

    async def suspend(self, reason: str) -> None:
        goal = self._goal
        if goal is None or goal.has_ended:
            raise NoGoal(f"{self._display_name} has no active goal to suspend")
        goal.state = GoalState.GOAL_STATE_SUSPENDED
        goal.suspend_reason = reason
        goal.plan = None
        await self._stop_runs()

    async def resume(self) -> None:
        goal = self._goal
        if goal is None or goal.has_ended:
            raise NoGoal(f"{self._display_name} has no suspended goal to resume")
        if not goal.is_active:
            goal.state = GoalState.GOAL_STATE_ACTIVE
            goal.suspend_reason = None
            await self._replan(goal)

    async def cancel(self) -> None:
        """Cancel the current goal, if any, and return when the vehicle has stopped."""
        self._end_goal()
        await self._stop_runs()

    async def replan(self) -> None:
        """Plan again after zones changed: another path may be better, or no path may be left."""
        goal = self._goal
        if goal is not None and goal.is_active and goal.avoids_zones:
            await self._replan(goal)

    async def _replan(self, goal: Goal) -> None:
        """Wait until another path is planned.

        The planning continues if the caller is cancelled, because the goal may belong to another
        client.
        """
        self._launch(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED)
        while self._goal is goal and goal.is_active and goal.plan is None:
            await self._clock.wait([self._changed], None)

    async def _wait_for(self, goal: Goal, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true. If the caller is cancelled, cancel the goal: nothing
        else supervises it."""
        try:
            while self._goal is goal and not condition():
                await self._clock.wait([self._changed], None)
        except asyncio.CancelledError:
            if self._goal is goal:
                self._end_goal()
            raise
        if self._goal is not goal:
            raise Interrupted(
                f"{self._display_name} did not reach its goal: a newer goal replaced this one"
            )

    def _end_goal(self) -> None:
        """Cancel the current goal without waiting until the vehicle has stopped."""
        if self._goal is not None and not self._goal.has_ended:
            self._goal.finish(GoalState.GOAL_STATE_CANCELED, self._clock.time())
        self._cancel_runs()

    async def _stop_runs(self) -> None:
        """Wait until the vehicle has stopped."""
        self._cancel_runs()
        await _wait_until_done(self._runs)

    def _cancel_runs(self) -> None:
        for run in self._runs:
            run.cancel()
        self._notify()

    def _launch(self, goal: Goal, code: NavErrorCode.ValueType, *, detours: bool = True) -> None:
        """Run the goal in the background, after older runs have stopped the vehicle."""
        goal.plan = None
        self._cancel_runs()
        run = self._run(goal, code, detours, tuple(self._runs))
        # Use an empty context: the run outlives the call, and should not keep objects of the call
        # alive.
        task = asyncio.get_running_loop().create_task(run, context=contextvars.Context())
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)

    async def _run(
        self,
        goal: Goal,
        code: NavErrorCode.ValueType,
        detours: bool,
        older: Collection[asyncio.Task[None]],
    ) -> None:
        try:
            await _wait_until_done(older)
            await self._pursue(goal, code, detours)
        except NotLocalized as error:
            self._fail(goal, NavErrorCode.NAV_ERROR_CODE_LOCALIZATION_LOST, str(error))
        except Exception as error:
            _, message = status_of(error, "the base")
            self._fail(goal, NavErrorCode.NAV_ERROR_CODE_BASE_ERROR, message)
        self._notify()

    async def _pursue(self, goal: Goal, code: NavErrorCode.ValueType, detours: bool) -> None:
        """Plan and follow paths until the goal has ended.

        `code` is the error code to report if the first plan fails.
        """
        deviations, shortest = 0, math.inf
        while goal.is_active:
            since = self._clock.monotonic()
            start = await self._vehicle.locate()
            try:
                plan = await self._planner.plan_goal(goal, start.point, detours=detours)
            except CogworkError as error:
                self._fail(goal, code, str(error))
                return
            code, detours = NavErrorCode.NAV_ERROR_CODE_BLOCKED, True
            if plan.length < shortest - MIN_PROGRESS:
                deviations, shortest = 0, plan.length
            try:
                await self._follow(goal, plan)
            except LeftPath as error:
                deviations += 1
                if deviations > MAX_DEVIATIONS:
                    raise
                self._logger.info("the vehicle left its path; planning another: %s", error)
                goal.plan = None
                continue
            if not goal.loops:
                goal.finish(GoalState.GOAL_STATE_SUCCEEDED, self._clock.time())
                return
            goal.complete_lap()
            shortest = math.inf
            if self._clock.monotonic() - since < MIN_LAP_TIME:
                await self._clock.sleep(MIN_LAP_TIME)

    async def _follow(self, goal: Goal, plan: PlannedPath) -> None:
        goal.begin(plan)
        self._notify()
        await self._vehicle.follow(plan, goal.complete_step)

    def _fail(self, goal: Goal, code: NavErrorCode.ValueType, message: str) -> None:
        if goal.is_active:
            self._logger.warning("the goal was not reached: %s", message)
            goal.fail(code, message, self._clock.time())

    def _notify(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set_result(None)
        self._changed = _new_future()


def _new_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def _wait_until_done(runs: Collection[asyncio.Task[None]]) -> None:
    """Wait until cancelled runs have stopped the vehicle."""
    if not runs:
        return
    _, pending = await asyncio.wait(runs, timeout=STOP_TIMEOUT)
    if pending:
        raise Interrupted(f"the vehicle did not stop within {STOP_TIMEOUT:g} s")
