"""A motion service for straight motions.

The service does not plan around obstacles, and rejects calls that ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from viam.components.arm import Arm
from viam.components.gantry import Gantry
from viam.components.movement_sensor import MovementSensor
from viam.proto.common import GeoGeometry, Geometry, GeoPoint, PoseInFrame, Transform, WorldState
from viam.proto.common import Pose as PoseMessage
from viam.proto.service.motion import (
    Constraints,
    GetPlanResponse,
    MotionConfiguration,
    PlanStatusWithID,
)
from viam.services.motion import Motion
from viam.services.slam import SLAM

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motion.base_drive import (
    DriveSettings,
    FindBase,
    go_straight,
    turn,
)
from cogwork.drivers.motion.gantry_kinematics import solve_positions
from cogwork.drivers.motion.locators import (
    GlobeLocator,
    MapLocator,
    globe_pose,
    has_orientation,
    yaw,
)
from cogwork.drivers.motion.motion_request import (
    read_drive_settings,
    refuse_constraints,
    refuse_obstacles,
    unsupported,
)
from cogwork.drivers.motion.plan_runner import PlanRunner
from cogwork.drivers.motion.supervised_move import run_move
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.machine_access import CoordinateFrames, MachineAccess, NoMachine
from cogwork.resource.messages.pose_proto import pose_from_proto, pose_to_proto, to_pose_in_frame
from cogwork.resource.messages.supplemental_transforms import read_supplemental_transforms
from cogwork.resource.model import logger_of
from cogwork.resource.moving_component import ARM, BASE, find_moving_component, origin_frame
from cogwork.spatial.chain import WORLD
from cogwork.spatial.frame_tree import FramePart
from cogwork.spatial.pose import Pose

MOVEMENT_SENSOR = Api.parse("rdk:component:movement_sensor")
SLAM_SERVICE = Api.parse("rdk:service:slam")

MAP_TOLERANCE = 0.1
GLOBE_TOLERANCE = 2.6
"""Meters from the goal at which a base counts as arrived; satellite positions are not more
precise."""


class BuiltinMotion(Motion):
    """Moves a component with the arm, gantry or base that carries it.

    A base moves on a plane: the height of its destination is ignored. A newer plan for a base stops
    the older one. A plan also ends when its base is stopped, or when another client takes control
    of the base during a leg.
    """

    def __init__(
        self,
        name: ResourceName,
        attributes: BuiltinMotionAttributes,
        machine: MachineAccess,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._machine = machine
        self._clock = clock
        self._plans = PlanRunner(clock, self.logger)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinMotionAttributes,
        dependencies: Dependencies,
        machine: MachineAccess,
        clock: Clock | None = None,
    ) -> BuiltinMotion:
        del dependencies
        return cls(name, attributes, machine, clock or SystemClock())

    async def move(
        self,
        component_name: str,
        destination: PoseInFrame,
        world_state: WorldState | None = None,
        constraints: Constraints | None = None,
        **_: Any,
    ) -> bool:
        refuse_obstacles(world_state)
        refuse_constraints(constraints)
        frames = self._require_frames()
        extra = read_supplemental_transforms(
            world_state.transforms if world_state is not None else (), frames
        )
        carrier = find_moving_component(component_name, tuple(self._machine.names()), frames, extra)
        find = self._make_finder(carrier)
        goal = await _goal_pose(frames, extra, component_name, destination, carrier)
        if carrier.api == ARM:
            arm = cast("Arm", find())
            await run_move(arm, arm.move_to_position(pose_to_proto(goal)), self._clock)
        elif carrier.api == BASE:
            is_carried = component_name != carrier.short
            has_heading = is_carried or has_orientation(destination.pose)
            await self._drive_to(cast("FindBase", find), goal, has_heading)
        else:
            positions = await solve_positions(cast("Gantry", find()), goal)
            gantry = cast("Gantry", find())
            # Without speeds, the gantry uses its default.
            await run_move(gantry, gantry.move_to_position(positions, []), self._clock)
        return True

    async def get_pose(
        self,
        component_name: str,
        destination_frame: str,
        supplemental_transforms: Sequence[Transform] | None = None,
        **_: Any,
    ) -> PoseInFrame:
        frames, frame = self._require_frames(), destination_frame or WORLD
        extra = read_supplemental_transforms(supplemental_transforms or (), frames)
        return to_pose_in_frame(
            await frames.transform(Pose.identity(), component_name, frame, extra), frame
        )

    async def move_on_map(
        self,
        component_name: str,
        destination: PoseMessage,
        slam_service_name: str,
        configuration: MotionConfiguration | None = None,
        obstacles: Sequence[Geometry] | None = None,
        **_: Any,
    ) -> str:
        if obstacles:
            raise unsupported("obstacles")
        settings = read_drive_settings(configuration, self._attributes, MAP_TOLERANCE)
        locator = MapLocator(
            lambda: cast("SLAM", self._machine.find_by_name(slam_service_name, SLAM_SERVICE)),
            destination,
        )
        return await self._start_plan(component_name, locator, settings, destination)

    async def move_on_globe(
        self,
        component_name: str,
        destination: GeoPoint,
        movement_sensor_name: str,
        obstacles: Sequence[GeoGeometry] | None = None,
        heading: float | None = None,
        configuration: MotionConfiguration | None = None,
        *,
        bounding_regions: Sequence[GeoGeometry] | None = None,
        **_: Any,
    ) -> str:
        if obstacles:
            raise unsupported("obstacles")
        if bounding_regions:
            raise unsupported("bounding regions")
        settings = read_drive_settings(configuration, self._attributes, GLOBE_TOLERANCE)
        locator = GlobeLocator(
            lambda: cast(
                "MovementSensor", self._machine.find_by_name(movement_sensor_name, MOVEMENT_SENSOR)
            ),
            destination,
            heading,
        )
        return await self._start_plan(
            component_name, locator, settings, globe_pose(destination, heading)
        )

    async def stop_plan(self, component_name: str, **_: Any) -> None:
        self._plans.history.find_newest(component_name)  # raises NotFound if there is no plan
        await self._plans.stop(component_name, "stopped by stop_plan")

    async def list_plan_statuses(
        self, only_active_plans: bool = False, **_: Any
    ) -> Sequence[PlanStatusWithID]:
        return self._plans.history.list_statuses(only_active_plans)

    async def get_plan(
        self,
        component_name: str,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        **_: Any,
    ) -> GetPlanResponse:
        del last_plan_only  # an execution has only one plan
        execution = self._plans.history.find_newest(component_name, execution_id or None)
        return GetPlanResponse(current_plan_with_status=execution.plan_message)

    async def stop(self, **_: Any) -> None:
        """Stop all plans. To stop any other move, clients stop the component that moves."""
        await self._plans.stop_all("all motion was stopped")

    async def close(self) -> None:
        await self._plans.aclose("the motion service was closed")

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"moving": self._plans.list_active()}

    async def _drive_to(self, find: FindBase, goal: Pose, has_heading: bool) -> None:
        """Drive to a pose relative to the base, which faces along y."""
        settings = read_drive_settings(None, self._attributes, MAP_TOLERANCE)
        x, y, _ = goal.point
        distance = math.hypot(x, y)
        bearing = math.degrees(math.atan2(-x, y)) if round(distance) else 0.0
        await turn(find, bearing, settings, self._clock)
        await go_straight(find, distance, settings, self._clock)
        if has_heading:
            await turn(find, yaw(goal) - bearing, settings, self._clock)

    async def _start_plan(
        self,
        component: str,
        locator: MapLocator | GlobeLocator,
        settings: DriveSettings,
        destination: PoseMessage,
    ) -> str:
        """Start a plan; report immediate errors to the caller."""
        find = cast("FindBase", self._make_finder(self._machine.resolve_name(component, BASE)))
        find()
        start = await locator.current_pose()
        return self._plans.start(component, [start, destination], find, locator, settings)

    def _make_finder(self, carrier: ResourceName) -> Callable[[], object]:
        """Return a function that returns the component for each step of a move.

        The function raises an error if the component was stopped during the move. Otherwise, a stop
        would go unnoticed between two steps, while only the position is read.
        """
        stops = self._machine.stop_count(carrier)

        def find() -> object:
            if self._machine.stop_count(carrier) != stops:
                raise Interrupted(
                    f'{carrier.api.subtype} "{carrier.short}" was stopped during the move'
                )
            return self._machine.find(carrier)

        return find

    def _require_frames(self) -> CoordinateFrames:
        if self._machine.frames is None:
            raise NoMachine(
                f'motion service "{self.name}" does not belong to a machine, so it has no frames'
            )
        return self._machine.frames


async def _goal_pose(
    frames: CoordinateFrames,
    extra: Sequence[FramePart],
    component: str,
    destination: PoseInFrame,
    carrier: ResourceName,
) -> Pose:
    """Return the pose of the carrier that puts the component at its destination.

    If the destination has no orientation, the component keeps its orientation on a gantry or base.
    """
    frame = destination.reference_frame
    requested = pose_from_proto(destination.pose)
    if carrier.api != ARM and not has_orientation(destination.pose):
        current = await frames.transform(Pose.identity(), component, frame, extra)
        requested = Pose(requested.point, current.rotation)
    goal = await frames.transform(requested, frame, origin_frame(carrier), extra)
    if component == carrier.short:
        return goal
    return goal.compose(await frames.transform(Pose.identity(), carrier.short, component, extra))
