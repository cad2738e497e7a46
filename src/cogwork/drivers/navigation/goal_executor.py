"""Executes the newest goal. The position is a function of time, so nothing ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from viam.proto.service.navigation import GoalState, NavErrorCode, Status, Velocity

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, Interrupted
from cogwork.core.workers import Workers
from cogwork.drivers.navigation.coordinates import MapPoint, MapPose
from cogwork.drivers.navigation.goal import Goal
from cogwork.drivers.navigation.map_store import MapStore
from cogwork.drivers.navigation.path_motion import PathMotion
from cogwork.drivers.navigation.planning import Keepout, find_blocking_zone, plan_through
from cogwork.drivers.navigation.search_budget import NoPath, SearchBudget
from cogwork.resource.timestamps import to_timestamp

T = TypeVar("T")


class NoGoal(CogworkError):
    """There is no goal to suspend or resume."""

    status = "FAILED_PRECONDITION"


class NotLocalized(CogworkError):
    """The machine does not know its position."""

    status = "FAILED_PRECONDITION"


class GoalPlan(NamedTuple):
    """The plan for a goal."""

    motion: PathMotion
    loop_motion: PathMotion | None = None
    path: Sequence[MapPoint] | None = None
    """The client's path, if the motion follows it."""


class GoalExecutor:
    def __init__(
        self,
        display_name: str,
        map_store: MapStore,
        localized: bool,
        clock: Clock,
        workers: Workers,
    ) -> None:
        """`workers` run the slow computations."""
        self._display_name = display_name
        self._workers = workers
        self._map = map_store
        self._localized = localized
        self._clock = clock
        self._rest_pose = MapPose((0.0, 0.0), 0.0)
        self._goal: Goal | None = None
        self._searches: set[asyncio.Task[None]] = set()
        """The running search, and others that were canceled."""
        self._changed: asyncio.Future[None] = _new_future()

    @property
    def pose(self) -> MapPose:
        """The current pose."""
        goal = self._update_goal()
        motion = goal.motion if goal is not None else None
        return self._rest_pose if motion is None else motion.pose_at(self._clock.monotonic())

    @property
    def is_moving(self) -> bool:
        goal = self._update_goal()
        return goal is not None and goal.is_active

    def status(self) -> Status:
        goal, now = self._update_goal(), self._clock.monotonic()
        motion = goal.motion if goal is not None else None
        return Status(
            position=self._map.coordinates.to_position(self.pose),
            localized=self._localized,
            velocity=Velocity(linear_m_per_sec=0.0 if motion is None else motion.speed_at(now)),
            goal=None if goal is None else goal.status(self._map.coordinates, now),
            updated_at=to_timestamp(self._clock.time()),
        )

    async def start(self, goal: Goal) -> None:
        """Replace the current goal and return when the machine is moving."""
        if not self._localized:
            raise NotLocalized(f"{self._display_name} does not know where it is, so it cannot move")
        self._pause()
        self._goal = goal
        self._notify()
        try:
            if goal.path is None:
                await self._search(goal, NavErrorCode.NAV_ERROR_CODE_NO_PATH)
            else:
                await self._search(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED, detours=False)
        except asyncio.CancelledError:
            # The caller is gone, and nothing else waits for the path.
            if self._goal is goal:
                self.cancel()
            raise
        self._check_is_current(goal)

    async def wait_until_ended(self, goal: Goal) -> None:
        """Wait until the goal has ended. Cancel the goal if the caller is gone: nothing else
        supervises it."""
        try:
            while self._update_goal() is goal and not goal.has_ended:
                remaining = None
                if goal.motion is not None and goal.loop_motion is None:
                    remaining = max(goal.motion.end_time - self._clock.monotonic(), 0.001)
                await self._clock.wait([self._changed], remaining)
        except asyncio.CancelledError:
            if self._goal is goal:
                self.cancel()
            raise
        self._check_is_current(goal)

    def suspend(self, reason: str) -> None:
        goal = self._update_goal()
        if goal is None or goal.has_ended:
            raise NoGoal(f"{self._display_name} has no active goal to suspend")
        self._pause()
        goal.state = GoalState.GOAL_STATE_SUSPENDED
        goal.suspend_reason = reason
        self._notify()

    async def resume(self) -> None:
        goal = self._update_goal()
        if goal is None or goal.has_ended:
            raise NoGoal(f"{self._display_name} has no suspended goal to resume")
        if not goal.is_active:
            goal.state = GoalState.GOAL_STATE_ACTIVE
            goal.suspend_reason = None
            self._notify()
            await self._search(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED)

    def cancel(self) -> None:
        """Cancel the current goal, if any."""
        goal = self._update_goal()
        if goal is not None and not goal.has_ended:
            self._pause()
            goal.finish(GoalState.GOAL_STATE_CANCELED, self._clock.time())
            self._notify()

    async def replan(self) -> None:
        """Plan again after zones changed: there may be another path, or none."""
        goal = self._update_goal()
        if goal is not None and goal.is_active and goal.avoids_zones:
            self._pause()
            await self._search(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED)

    async def close(self) -> None:
        self.cancel()
        self._cancel_searches()
        if self._searches:
            await asyncio.wait(self._searches)

    async def plan_legs(self, start: MapPoint, stops: Sequence[MapPoint]) -> list[list[MapPoint]]:
        """Plan a path to each stop; raise NoPath. Runs in a thread, because there may be many
        zones."""
        keepouts = self._map.keepouts()
        if not keepouts:
            return [[stop] for stop in stops]
        return await self._run_with_budget(plan_through, [start, *stops], keepouts)

    async def _search(
        self, goal: Goal, code: NavErrorCode.ValueType, *, detours: bool = True
    ) -> None:
        """Wait until a path is found or the search is canceled.

        The search continues if the caller is gone: the goal may belong to another client.
        """
        search = asyncio.create_task(self._run_search(goal, code, detours))
        self._searches.add(search)
        search.add_done_callback(self._searches.discard)
        await asyncio.wait([search])
        if not search.cancelled():
            search.result()

    async def _run_search(self, goal: Goal, code: NavErrorCode.ValueType, detours: bool) -> None:
        """Search while the machine rests. Pausing the goal cancels the search, so a result is
        always current."""
        try:
            plan = await self._plan_goal(goal, detours)
        except CogworkError as error:
            goal.fail(code, str(error), self._clock.time())
        else:
            goal.motion = plan.motion.start_at(self._clock.monotonic())
            goal.loop_motion, goal.path = plan.loop_motion, plan.path
        self._notify()

    async def _plan_goal(self, goal: Goal, detours: bool) -> GoalPlan:
        """Plan a motion; `detours` allows leaving the client's path where it is blocked."""
        if goal.path is not None:
            try:
                return await self._plan_along_path(goal, goal.path)
            except NoPath:
                if not detours:
                    raise
        return await self._plan_past_stops(goal)

    async def _plan_along_path(self, goal: Goal, path: Sequence[MapPoint]) -> GoalPlan:
        await self._check_path(path)
        # Every position is a stop, so that pausing knows which ones remain.
        legs = [[point] for point in path]
        return GoalPlan(
            await self._build_motion(goal, self._rest_pose, legs, goal.stops[-1].pose), path=path
        )

    async def _plan_past_stops(self, goal: Goal) -> GoalPlan:
        """Plan past the remaining stops, and one lap past all of them if the route loops."""
        remaining = [each.pose for each in goal.stops[goal.index :]]
        motion = await self._plan_motion(goal, self._rest_pose, remaining)
        if goal.route is None or not goal.route.loop:
            return GoalPlan(motion)
        lap = [each.pose for each in goal.stops]
        return GoalPlan(motion, await self._plan_motion(goal, motion.end_pose, lap))

    async def _check_path(self, path: Sequence[MapPoint]) -> None:
        keepouts = self._map.keepouts()
        zone = await self._run_with_budget(
            find_blocking_zone, [self._rest_pose.point, *path], keepouts
        )
        if zone is not None:
            raise NoPath(f'zone "{zone.name}" blocks the plan: make another one')

    async def _plan_motion(
        self, goal: Goal, start: MapPose, stops: Sequence[MapPose]
    ) -> PathMotion:
        points = [stop.point for stop in stops]
        legs = (
            await self.plan_legs(start.point, points)
            if goal.avoids_zones
            else [[each] for each in points]
        )
        return await self._build_motion(goal, start, legs, stops[-1])

    async def _build_motion(
        self, goal: Goal, start: MapPose, legs: Sequence[Sequence[MapPoint]], last: MapPose
    ) -> PathMotion:
        limits = self._map.speed_limits() if goal.avoids_zones else []
        if not limits:
            return PathMotion.from_legs(start, legs, last.yaw, goal.speed)
        SearchBudget().spend(len(limits) * sum(len(leg) for leg in legs))
        return await self._workers.run(
            PathMotion.from_legs, start, legs, last.yaw, goal.speed, limits
        )

    async def _run_with_budget(
        self,
        work: Callable[[Sequence[MapPoint], Sequence[Keepout], SearchBudget], T],
        points: Sequence[MapPoint],
        keepouts: Sequence[Keepout],
    ) -> T:
        """Run the work in a thread; cancel it when the caller is gone."""
        budget = SearchBudget()
        try:
            return await self._workers.run(work, points, keepouts, budget)
        finally:
            budget.cancel()

    def _update_goal(self) -> Goal | None:
        """Return the newest goal, updated to the current time."""
        if self._goal is not None:
            end = self._goal.advance(self._clock)
            if end is not None:
                self._rest_pose = end
        return self._goal

    def _pause(self) -> None:
        """Stop in place."""
        self._cancel_searches()
        goal = self._update_goal()
        self._rest_pose = self.pose
        if goal is not None:
            goal.pause(self._clock.monotonic())

    def _cancel_searches(self) -> None:
        for search in self._searches:
            search.cancel()

    def _check_is_current(self, goal: Goal) -> None:
        if self._goal is not goal:
            raise Interrupted(
                f"{self._display_name} did not get there: a newer goal replaced this one"
            )

    def _notify(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set_result(None)
        self._changed = _new_future()


def _new_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()
