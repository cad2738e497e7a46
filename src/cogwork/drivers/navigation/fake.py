"""A fake navigation service whose vehicle is a point that moves in straight lines."""

from __future__ import annotations

from collections.abc import Callable

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.joint_trajectory import JointTrajectory, TrajectorySegment
from cogwork.drivers.mover import Mover
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.navigation.coordinates import GpsCoordinates, LocalCoordinates, MapPose
from cogwork.drivers.navigation.footprint import Footprint
from cogwork.drivers.navigation.goal_service import GoalNavigation
from cogwork.drivers.navigation.planned_path import PathStep, PlannedPath
from cogwork.drivers.navigation.vehicle import NotLocalized
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.spatial.geodesy import GeoCoordinate


class SimulatedVehicle:
    """A point without inertia; turning takes no time. It starts at the origin of the map."""

    def __init__(self, display_name: str, localized: bool, clock: Clock) -> None:
        self._display_name = display_name
        self._localized = localized
        self._clock = clock
        self._mover = Mover(display_name, (0.0, 0.0), clock)
        self._yaw = 0.0
        self._step_speed = 0.0

    @property
    def speed(self) -> float:
        return self._step_speed if self._mover.is_moving else 0.0

    async def locate(self) -> MapPose:
        if not self._localized:
            raise NotLocalized(f"{self._display_name} does not know where it is, so it cannot move")
        x, y = self._mover.joints
        return MapPose((x, y), self._yaw)

    async def follow(self, path: PlannedPath, on_step: Callable[[], None]) -> None:
        for step in path.steps:
            await self._drive(step)
            on_step()
        if path.end_yaw is not None:
            self._yaw = path.end_yaw

    async def _drive(self, step: PathStep) -> None:
        if not step.length:
            return
        self._yaw, self._step_speed = step.yaw, step.speed
        now = self._clock.monotonic()
        segment = TrajectorySegment(step.end, step.length / step.speed)
        trajectory = JointTrajectory.at_rest(step.start, now).follow_segments([segment], now)
        await self._mover.follow("drive", trajectory)


class FakeNavigation(GoalNavigation):
    backend = "fake"

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeNavigationAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeNavigation:
        del dependencies
        clock = clock or SystemClock()
        vehicle = SimulatedVehicle(f'navigation service "{name.name}"', attributes.localized, clock)
        coordinates = (
            GpsCoordinates(GeoCoordinate(attributes.latitude, attributes.longitude))
            if attributes.map_type == "gps"
            else LocalCoordinates()
        )
        footprint = Footprint(attributes.footprint_length_m, attributes.footprint_width_m)
        return cls(name, vehicle, coordinates, footprint, attributes.linear_m_per_sec, clock)
