"""The planner of paths to goals. It works in threads, because planning around many zones is
slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from cogwork.core.workers import Workers
from cogwork.drivers.navigation.coordinates import MapPoint
from cogwork.drivers.navigation.goal import Goal
from cogwork.drivers.navigation.map_store import MapStore
from cogwork.drivers.navigation.planned_path import PlannedPath
from cogwork.drivers.navigation.planning import Keepout, find_blocking_zone, plan_through
from cogwork.drivers.navigation.search_budget import NoPath, SearchBudget

T = TypeVar("T")


class Planner:
    def __init__(self, map_store: MapStore, workers: Workers) -> None:
        self._map = map_store
        self._workers = workers

    async def plan_goal(self, goal: Goal, start: MapPoint, *, detours: bool) -> PlannedPath:
        """Plan a path through the remaining stops; raise NoPath if no path exists.

        `detours` allows leaving the client's path where it is blocked.
        """
        end_yaw = goal.stops[-1].pose.yaw
        if goal.given_path is not None:
            try:
                await self._check_path([start, *goal.given_path])
            except NoPath:
                if not detours:
                    raise
            else:
                # Every position is a stop, so that the goal knows which ones remain.
                legs = [[point] for point in goal.given_path]
                return await self._set_speeds(goal, start, legs, end_yaw)
        points = [each.pose.point for each in goal.stops[goal.index :]]
        legs = (
            await self.plan_legs(start, points)
            if goal.avoids_zones
            else [[point] for point in points]
        )
        return await self._set_speeds(goal, start, legs, end_yaw)

    async def plan_legs(self, start: MapPoint, stops: Sequence[MapPoint]) -> list[list[MapPoint]]:
        """Plan a path to each stop; raise NoPath if no path exists."""
        keepouts = self._map.keepouts()
        if not keepouts:
            return [[stop] for stop in stops]
        return await self._run_with_budget(plan_through, [start, *stops], keepouts)

    async def _check_path(self, path: Sequence[MapPoint]) -> None:
        zone = await self._run_with_budget(find_blocking_zone, path, self._map.keepouts())
        if zone is not None:
            raise NoPath(f'zone "{zone.name}" blocks the path of the plan: request another plan')

    async def _set_speeds(
        self,
        goal: Goal,
        start: MapPoint,
        legs: Sequence[Sequence[MapPoint]],
        end_yaw: float | None,
    ) -> PlannedPath:
        limits = self._map.speed_limits() if goal.avoids_zones else []
        if not limits:
            return PlannedPath.from_legs(start, legs, end_yaw, goal.speed)
        SearchBudget().spend(len(limits) * sum(len(leg) for leg in legs))
        return await self._workers.run(
            PlannedPath.from_legs, start, legs, end_yaw, goal.speed, limits
        )

    async def _run_with_budget(
        self,
        work: Callable[[Sequence[MapPoint], Sequence[Keepout], SearchBudget], T],
        points: Sequence[MapPoint],
        keepouts: Sequence[Keepout],
    ) -> T:
        """Run the work in a thread; cancel the work if the caller is cancelled."""
        budget = SearchBudget()
        try:
            return await self._workers.run(work, points, keepouts, budget)
        finally:
            budget.cancel()
