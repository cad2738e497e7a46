"""Who has the machine: the newest goal. Where it is follows from the time, and nothing counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from viam.proto.service.navigation import GoalState, NavErrorCode, Status, Velocity

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, Interrupted
from cogwork.core.workers import Workers
from cogwork.drivers.navigation.atlas import Atlas
from cogwork.drivers.navigation.chart import Place, Spot
from cogwork.drivers.navigation.effort import Effort, NoWay
from cogwork.drivers.navigation.goal import Goal
from cogwork.drivers.navigation.planning import Keepout, first_block, way_through
from cogwork.drivers.navigation.trip import Trip
from cogwork.resource.moments import timestamp

T = TypeVar("T")


class NoGoal(CogworkError):
    """There is nothing to hold, or to go on with."""

    status = "FAILED_PRECONDITION"


class NotLocalized(CogworkError):
    """It does not know where it is."""

    status = "FAILED_PRECONDITION"


class Ahead(NamedTuple):
    """What was found for a goal."""

    trip: Trip
    circuit: Trip | None = None
    path: Sequence[Spot] | None = None
    """The one that the goal came with, if the trip leads along it."""


class Pilot:
    def __init__(
        self, called: str, atlas: Atlas, localized: bool, clock: Clock, workers: Workers
    ) -> None:
        """`workers`: do what takes long."""
        self._called = called
        self._workers = workers
        self._atlas = atlas
        self._localized = localized
        self._clock = clock
        self._rest = Place((0.0, 0.0), 0.0)
        self._goal: Goal | None = None
        self._thoughts: set[asyncio.Task[None]] = set()
        """Those that look for a way: one, and others that are given up."""
        self._changed: asyncio.Future[None] = _to_be_told()

    @property
    def place(self) -> Place:
        """Where it is."""
        goal = self._settled()
        trip = goal.trip if goal is not None else None
        return self._rest if trip is None else trip.place(self._clock.monotonic())

    @property
    def is_moving(self) -> bool:
        goal = self._settled()
        return goal is not None and goal.is_active

    def status(self) -> Status:
        goal, now = self._settled(), self._clock.monotonic()
        trip = goal.trip if goal is not None else None
        return Status(
            position=self._atlas.chart.write(self.place),
            localized=self._localized,
            velocity=Velocity(linear_m_per_sec=0.0 if trip is None else trip.speed(now)),
            goal=None if goal is None else goal.status(self._atlas.chart, now),
            updated_at=timestamp(self._clock.time()),
        )

    async def begin(self, goal: Goal) -> None:
        """Until it is on its way."""
        if not self._localized:
            raise NotLocalized(f"{self._called} does not know where it is, and goes nowhere")
        self._hold()
        self._goal = goal
        self._tell()
        try:
            if goal.path is None:
                await self._find(goal, NavErrorCode.NAV_ERROR_CODE_NO_PATH)
            else:
                await self._find(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED, detours=False)
        except asyncio.CancelledError:
            # Whoever asked is gone, and nobody else waits for a way.
            if self._goal is goal:
                self.cancel()
            raise
        self._check_still_has_it(goal)

    async def arrived(self, goal: Goal) -> None:
        """Until it is over. Whoever waits and goes away leaves nobody who watches: it stops."""
        try:
            while self._settled() is goal and not goal.is_over:
                left = None
                if goal.trip is not None and goal.circuit is None:
                    left = max(goal.trip.ends - self._clock.monotonic(), 0.001)
                await self._clock.wait([self._changed], left)
        except asyncio.CancelledError:
            if self._goal is goal:
                self.cancel()
            raise
        self._check_still_has_it(goal)

    def suspend(self, reason: str) -> None:
        goal = self._settled()
        if goal is None or goal.is_over:
            raise NoGoal(f"{self._called} is on its way to nowhere: there is nothing to suspend")
        self._hold()
        goal.state = GoalState.GOAL_STATE_SUSPENDED
        goal.suspend_reason = reason
        self._tell()

    async def resume(self) -> None:
        goal = self._settled()
        if goal is None or goal.is_over:
            raise NoGoal(f"{self._called} has no goal that is suspended: send it somewhere")
        if not goal.is_active:
            goal.state = GoalState.GOAL_STATE_ACTIVE
            goal.suspend_reason = None
            self._tell()
            await self._find(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED)

    def cancel(self) -> None:
        """Where there is nothing to cancel, nothing happens."""
        goal = self._settled()
        if goal is not None and not goal.is_over:
            self._hold()
            goal.finish(GoalState.GOAL_STATE_CANCELED, self._clock.time())
            self._tell()

    async def mind_zones(self) -> None:
        """They changed: there may be another way, or none."""
        goal = self._settled()
        if goal is not None and goal.is_active and goal.minds_zones:
            self._hold()
            await self._find(goal, NavErrorCode.NAV_ERROR_CODE_BLOCKED)

    async def close(self) -> None:
        self.cancel()
        self._give_up_thoughts()
        if self._thoughts:
            await asyncio.wait(self._thoughts)

    async def way(self, start: Spot, stops: Sequence[Spot]) -> list[list[Spot]]:
        """Raises NoWay. Beside the loop: there may be much to go around."""
        keepouts = self._atlas.keepouts()
        if not keepouts:
            return [[stop] for stop in stops]
        return await self._worked_out(way_through, [start, *stops], keepouts)

    async def _find(
        self, goal: Goal, code: NavErrorCode.ValueType, *, detours: bool = True
    ) -> None:
        """Until there is a way, or something else came meanwhile. Whoever waits may go away: the
        goal may be somebody else's, and goes on."""
        thought = asyncio.create_task(self._think(goal, code, detours))
        self._thoughts.add(thought)
        thought.add_done_callback(self._thoughts.discard)
        await asyncio.wait([thought])
        if not thought.cancelled():
            thought.result()

    async def _think(self, goal: Goal, code: NavErrorCode.ValueType, detours: bool) -> None:
        """It stands meanwhile. Given up when the goal is held: whatever is found here counts."""
        try:
            ahead = await self._planned(goal, detours)
        except CogworkError as error:
            goal.fail(code, str(error), self._clock.time())
        else:
            goal.trip = ahead.trip.begun(self._clock.monotonic())
            goal.circuit, goal.path = ahead.circuit, ahead.path
        self._tell()

    async def _planned(self, goal: Goal, detours: bool) -> Ahead:
        """`detours`: whether it leaves the path that it was told to go, where that is blocked."""
        if goal.path is not None:
            try:
                return await self._along(goal, goal.path)
            except NoWay:
                if not detours:
                    raise
        return await self._past_stops(goal)

    async def _along(self, goal: Goal, path: Sequence[Spot]) -> Ahead:
        await self._check(path)
        # Each of its positions is a station: who is held knows which are left.
        legs = [[spot] for spot in path]
        return Ahead(await self._trip(goal, self._rest, legs, goal.stops[-1].place), path=path)

    async def _past_stops(self, goal: Goal) -> Ahead:
        """Past those ahead, and then around all of them, if it does not end there."""
        ahead = [each.place for each in goal.stops[goal.index :]]
        trip = await self._trip_past(goal, self._rest, ahead)
        if goal.tour is None or not goal.tour.loop:
            return Ahead(trip)
        around = [each.place for each in goal.stops]
        return Ahead(trip, await self._trip_past(goal, trip.end, around))

    async def _check(self, path: Sequence[Spot]) -> None:
        keepouts = self._atlas.keepouts()
        block = await self._worked_out(first_block, [self._rest.spot, *path], keepouts)
        if block is not None:
            raise NoWay(f'zone "{block.name}" is in the way of the plan: make another')

    async def _trip_past(self, goal: Goal, start: Place, stops: Sequence[Place]) -> Trip:
        spots = [stop.spot for stop in stops]
        legs = await self.way(start.spot, spots) if goal.minds_zones else [[each] for each in spots]
        return await self._trip(goal, start, legs, stops[-1])

    async def _trip(
        self, goal: Goal, start: Place, legs: Sequence[Sequence[Spot]], last: Place
    ) -> Trip:
        limits = self._atlas.speed_limits() if goal.minds_zones else []
        if not limits:
            return Trip.along(start, legs, last.yaw, goal.speed)
        Effort().spend(len(limits) * sum(len(leg) for leg in legs))
        return await self._workers.run(Trip.along, start, legs, last.yaw, goal.speed, limits)

    async def _worked_out(
        self,
        work: Callable[[Sequence[Spot], Sequence[Keepout], Effort], T],
        spots: Sequence[Spot],
        keepouts: Sequence[Keepout],
    ) -> T:
        """As long as somebody waits for it."""
        effort = Effort()
        try:
            return await self._workers.run(work, spots, keepouts, effort)
        finally:
            effort.give_up()

    def _settled(self) -> Goal | None:
        """The newest goal, as time left it."""
        if self._goal is not None:
            end = self._goal.arrive(self._clock)
            if end is not None:
                self._rest = end
        return self._goal

    def _hold(self) -> None:
        """It stands where it is."""
        self._give_up_thoughts()
        goal = self._settled()
        self._rest = self.place
        if goal is not None:
            goal.hold(self._clock.monotonic())

    def _give_up_thoughts(self) -> None:
        for thought in self._thoughts:
            thought.cancel()

    def _check_still_has_it(self, goal: Goal) -> None:
        if self._goal is not goal:
            raise Interrupted(f"{self._called} did not get there: a newer goal took over")

    def _tell(self) -> None:
        """Whoever waits for something to change."""
        self._changed.set_result(None)
        self._changed = _to_be_told()


def _to_be_told() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()
