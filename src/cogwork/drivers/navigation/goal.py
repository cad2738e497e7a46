"""Where the machine is sent, and what became of that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from viam.proto.service.navigation import (
    GoalState,
    GoalStatus,
    NavError,
    NavErrorCode,
    NavMode,
    Position,
    Progress,
    RouteProgress,
    Waypoint,
)

from cogwork.core.clock import Clock
from cogwork.drivers.navigation.atlas import Stop
from cogwork.drivers.navigation.chart import Chart, Place, Spot
from cogwork.drivers.navigation.planning import length
from cogwork.drivers.navigation.trip import Trip
from cogwork.resource.moments import timestamp

MOST_LAPS = 2**32 - 1
"""As many as a message can tell."""


@dataclass(frozen=True, slots=True)
class Tour:
    """A route that is gone along."""

    name: str
    """Empty if nobody saved it."""
    waypoints: Sequence[Waypoint]
    loop: bool = False


@dataclass(slots=True)
class Goal:
    mode: NavMode.ValueType
    stops: Sequence[Stop]
    speed: float
    """Metres per second."""
    started_at: float
    """Seconds since 1970."""
    tour: Tour | None = None
    path: Sequence[Spot] | None = None
    """The rest of the way that it was told to go to its only stop; None: it looks for one."""
    index: int = 0
    """The stop that the trip leads to first."""
    lap: int = 0
    """How often it has been around, as far as that can be told."""
    state: GoalState.ValueType = GoalState.GOAL_STATE_ACTIVE
    trip: Trip | None = None
    """None while a way is looked for, and while it goes nowhere."""
    circuit: Trip | None = None
    """From the last stop past all of them, if it does not end there."""
    suspend_reason: str | None = None
    error: NavError | None = None
    finished_at: float | None = None

    @property
    def is_active(self) -> bool:
        return self.state == GoalState.GOAL_STATE_ACTIVE

    @property
    def is_over(self) -> bool:
        return not self.is_active and self.state != GoalState.GOAL_STATE_SUSPENDED

    @property
    def minds_zones(self) -> bool:
        return self.mode != NavMode.NAV_MODE_DIRECT

    def next_stop(self, now: float) -> int:
        passed = self.trip.passed(now) if self.trip is not None else 0
        return min(self.index + passed, len(self.stops) - 1)

    def hold(self, now: float) -> None:
        """It goes nowhere. What is ahead of it still is."""
        if self.trip is None:
            return
        if self.path is not None:
            # The last one is ahead until it has arrived.
            self.path = self.path[self.trip.passed(now) :] or self.path[-1:]
        self.index = self.next_stop(now)
        self.trip = self.circuit = None

    def arrive(self, clock: Clock) -> Place | None:
        """Once its trip is over, it ends or goes around once more. Returns where it ended."""
        now = clock.monotonic()
        if self.trip is None or not self.trip.is_over(now):
            return None
        since, end = self.trip.ends, self.trip.end
        if self.circuit is None:
            self.finish(GoalState.GOAL_STATE_SUCCEEDED, clock.time() - (now - since))
            return end
        laps = math.floor((now - since) / self.circuit.seconds)
        self.lap = min(self.lap + 1 + laps, MOST_LAPS)
        self.index = 0
        self.trip = self.circuit.begun(since + laps * self.circuit.seconds)
        return None

    def finish(self, state: GoalState.ValueType, at: float) -> None:
        if state == GoalState.GOAL_STATE_SUCCEEDED:
            self.index = len(self.stops) - 1
        self.state, self.finished_at = state, at
        self.trip = self.circuit = None
        self.suspend_reason = None

    def fail(self, code: NavErrorCode.ValueType, words: str, at: float) -> None:
        self.error = NavError(code=code, message=words)
        self.finish(GoalState.GOAL_STATE_FAILED, at)

    def status(self, chart: Chart, now: float) -> GoalStatus:
        at = self.next_stop(now)
        stop = self.stops[at]
        return GoalStatus(
            state=self.state,
            mode=self.mode,
            target=stop.position,
            location=stop.location,
            progress=self._progress(chart, now),
            route=self._route(at),
            suspend_reason=self.suspend_reason,
            error=self.error,
            started_at=timestamp(self.started_at),
            finished_at=None if self.finished_at is None else timestamp(self.finished_at),
        )

    def _progress(self, chart: Chart, now: float) -> Progress | None:
        if self.trip is None:
            return None
        path = written(self.trip.path, self.trip.arrives, chart) if self.minds_zones else ()
        return Progress(
            distance_remaining_m=self.trip.remaining(now),
            path=path,
            length_m=length(self.trip.path),
        )

    def _route(self, at: int) -> RouteProgress | None:
        if self.tour is None:
            return None
        return RouteProgress(
            name=self.tour.name,
            waypoints=self.tour.waypoints,
            index=at,
            loop=self.tour.loop,
            lap=self.lap,
        )


def written(path: Sequence[Spot], arrives: float | None, chart: Chart) -> list[Position]:
    """Each of them looks to the next."""
    yaws = [
        math.degrees(math.atan2(there[1] - here[1], there[0] - here[0]))
        for here, there in itertools.pairwise(path)
    ]
    last = arrives if arrives is not None else (yaws[-1] if yaws else 0.0)
    places = zip(path, [*yaws, last], strict=True)
    return [chart.write(Place(spot, yaw)) for spot, yaw in places]
