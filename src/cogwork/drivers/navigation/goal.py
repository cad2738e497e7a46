"""A navigation goal and its progress."""

from __future__ import annotations

import itertools
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

from cogwork.drivers.navigation.coordinates import MapCoordinates, MapPoint, MapPose
from cogwork.drivers.navigation.map_store import Destination
from cogwork.drivers.navigation.planned_path import PlannedPath, yaw_toward
from cogwork.resource.messages.timestamps import to_timestamp

MAX_LAPS = 2**32 - 1
"""Maximum number of laps that the message can hold."""


@dataclass(frozen=True, slots=True)
class ActiveRoute:
    """A route that is being followed."""

    name: str
    """The name, or empty if the route is not saved."""
    waypoints: Sequence[Waypoint]
    loop: bool = False


@dataclass(slots=True)
class Goal:
    mode: NavMode.ValueType
    stops: Sequence[Destination]
    speed: float
    """Speed in meters per second."""
    started_at: float
    """Start time in seconds since 1970."""
    route: ActiveRoute | None = None
    given_path: Sequence[MapPoint] | None = None
    """The remaining points of the path that the client gave. None if the path must be planned."""
    index: int = 0
    """The index of the next stop."""
    lap: int = 0
    """The number of completed laps, at most the number that the message can hold."""
    state: GoalState.ValueType = GoalState.GOAL_STATE_ACTIVE
    plan: PlannedPath | None = None
    """The path that is being followed, or None while planning and at rest."""
    step: int = 0
    """The index of the current step of the plan."""
    suspend_reason: str | None = None
    error: NavError | None = None
    finished_at: float | None = None

    @property
    def is_active(self) -> bool:
        return self.state == GoalState.GOAL_STATE_ACTIVE

    @property
    def has_ended(self) -> bool:
        return not self.is_active and self.state != GoalState.GOAL_STATE_SUSPENDED

    @property
    def avoids_zones(self) -> bool:
        return self.mode != NavMode.NAV_MODE_DIRECT

    @property
    def loops(self) -> bool:
        return self.route is not None and self.route.loop

    def begin(self, plan: PlannedPath) -> None:
        self.plan, self.step = plan, 0
        if self.given_path is not None and plan.points[1:] != tuple(self.given_path):
            self.given_path = None  # the plan does not follow the given path

    def complete_step(self) -> None:
        """Record a completed step, and the stops and points that remain."""
        assert self.plan is not None
        if self.plan.steps[self.step].ends_leg:
            if self.given_path is not None:
                # The last point remains until the final heading is reached, too.
                self.given_path = self.given_path[1:] or self.given_path[-1:]
            else:
                self.index = min(self.index + 1, len(self.stops) - 1)
        self.step += 1

    def complete_lap(self) -> None:
        self.lap = min(self.lap + 1, MAX_LAPS)
        self.index = 0
        self.plan = None

    def finish(self, state: GoalState.ValueType, time: float) -> None:
        self.state, self.finished_at = state, time
        self.plan = self.suspend_reason = None

    def fail(self, code: NavErrorCode.ValueType, message: str, time: float) -> None:
        self.error = NavError(code=code, message=message)
        self.finish(GoalState.GOAL_STATE_FAILED, time)

    def status(self, coordinates: MapCoordinates, current: MapPose | None) -> GoalStatus:
        stop = self.stops[self.index]
        return GoalStatus(
            state=self.state,
            mode=self.mode,
            target=stop.position,
            location=stop.location,
            progress=self._progress(coordinates, current),
            route=self._route_progress(),
            suspend_reason=self.suspend_reason,
            error=self.error,
            started_at=to_timestamp(self.started_at),
            finished_at=None if self.finished_at is None else to_timestamp(self.finished_at),
        )

    def _progress(self, coordinates: MapCoordinates, current: MapPose | None) -> Progress | None:
        if self.plan is None or current is None:
            return None
        path = (
            to_positions(self.plan.points, self.plan.end_yaw, coordinates)
            if self.avoids_zones
            else ()
        )
        return Progress(
            distance_remaining_m=self.plan.remaining_distance(self.step, current.point),
            path=path,
            length_m=self.plan.length,
        )

    def _route_progress(self) -> RouteProgress | None:
        if self.route is None:
            return None
        return RouteProgress(
            name=self.route.name,
            waypoints=self.route.waypoints,
            index=self.index,
            loop=self.route.loop,
            lap=self.lap,
        )


def to_positions(
    path: Sequence[MapPoint], end_yaw: float | None, coordinates: MapCoordinates
) -> list[Position]:
    """Return the positions of a path, each facing the next one."""
    yaws = [yaw_toward(here, there) for here, there in itertools.pairwise(path)]
    last = end_yaw if end_yaw is not None else (yaws[-1] if yaws else 0.0)
    poses = zip(path, [*yaws, last], strict=True)
    return [coordinates.to_position(MapPose(point, yaw)) for point, yaw in poses]
