"""A navigation goal and its progress."""

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
from cogwork.drivers.navigation.coordinates import MapCoordinates, MapPoint, MapPose
from cogwork.drivers.navigation.map_store import Destination
from cogwork.drivers.navigation.path_motion import PathMotion
from cogwork.drivers.navigation.planning import path_length
from cogwork.resource.timestamps import to_timestamp

MAX_LAPS = 2**32 - 1
"""The maximum that a message can represent."""


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
    path: Sequence[MapPoint] | None = None
    """The rest of the path that the client gave for the only stop, or None to plan one."""
    index: int = 0
    """The first stop of the motion."""
    lap: int = 0
    """The number of completed laps, up to the limit of the message."""
    state: GoalState.ValueType = GoalState.GOAL_STATE_ACTIVE
    motion: PathMotion | None = None
    """The current motion, or None while planning and at rest."""
    loop_motion: PathMotion | None = None
    """The motion of one lap, from the last stop past all stops, for a route that loops."""
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

    def next_stop(self, now: float) -> int:
        stops_passed = self.motion.stops_passed(now) if self.motion is not None else 0
        return min(self.index + stops_passed, len(self.stops) - 1)

    def pause(self, now: float) -> None:
        """Stop moving; keep the remaining stops and path."""
        if self.motion is None:
            return
        if self.path is not None:
            # The last point remains until it is reached.
            self.path = self.path[self.motion.stops_passed(now) :] or self.path[-1:]
        self.index = self.next_stop(now)
        self.motion = self.loop_motion = None

    def advance(self, clock: Clock) -> MapPose | None:
        """Finish the goal or start the next lap when its motion has ended; return the final
        pose."""
        now = clock.monotonic()
        if self.motion is None or not self.motion.has_ended(now):
            return None
        since, end = self.motion.end_time, self.motion.end_pose
        if self.loop_motion is None:
            self.finish(GoalState.GOAL_STATE_SUCCEEDED, clock.time() - (now - since))
            return end
        laps = math.floor((now - since) / self.loop_motion.seconds)
        self.lap = min(self.lap + 1 + laps, MAX_LAPS)
        self.index = 0
        self.motion = self.loop_motion.start_at(since + laps * self.loop_motion.seconds)
        return None

    def finish(self, state: GoalState.ValueType, time: float) -> None:
        if state == GoalState.GOAL_STATE_SUCCEEDED:
            self.index = len(self.stops) - 1
        self.state, self.finished_at = state, time
        self.motion = self.loop_motion = None
        self.suspend_reason = None

    def fail(self, code: NavErrorCode.ValueType, message: str, time: float) -> None:
        self.error = NavError(code=code, message=message)
        self.finish(GoalState.GOAL_STATE_FAILED, time)

    def status(self, coordinates: MapCoordinates, now: float) -> GoalStatus:
        index = self.next_stop(now)
        stop = self.stops[index]
        return GoalStatus(
            state=self.state,
            mode=self.mode,
            target=stop.position,
            location=stop.location,
            progress=self._progress(coordinates, now),
            route=self._route_progress(index),
            suspend_reason=self.suspend_reason,
            error=self.error,
            started_at=to_timestamp(self.started_at),
            finished_at=None if self.finished_at is None else to_timestamp(self.finished_at),
        )

    def _progress(self, coordinates: MapCoordinates, now: float) -> Progress | None:
        if self.motion is None:
            return None
        path = (
            to_positions(self.motion.path, self.motion.end_yaw, coordinates)
            if self.avoids_zones
            else ()
        )
        return Progress(
            distance_remaining_m=self.motion.remaining_distance(now),
            path=path,
            length_m=path_length(self.motion.path),
        )

    def _route_progress(self, index: int) -> RouteProgress | None:
        if self.route is None:
            return None
        return RouteProgress(
            name=self.route.name,
            waypoints=self.route.waypoints,
            index=index,
            loop=self.route.loop,
            lap=self.lap,
        )


def to_positions(
    path: Sequence[MapPoint], end_yaw: float | None, coordinates: MapCoordinates
) -> list[Position]:
    """Return the positions of a path, each facing the next one."""
    yaws = [
        math.degrees(math.atan2(there[1] - here[1], there[0] - here[0]))
        for here, there in itertools.pairwise(path)
    ]
    last = end_yaw if end_yaw is not None else (yaws[-1] if yaws else 0.0)
    poses = zip(path, [*yaws, last], strict=True)
    return [coordinates.to_position(MapPose(point, yaw)) for point, yaw in poses]
