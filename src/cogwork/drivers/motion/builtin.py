"""Straight motions of what is there: nothing is planned around obstacles, and whoever asks for that
is told so."""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    PlanState,
    PlanStatusWithID,
)
from viam.services.motion import Motion
from viam.services.slam import SLAM

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted, InvalidRequest, Unsupported
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motion.carrier import ARM, BASE, carrier_of, origin_of
from cogwork.drivers.motion.drive import Find, Locator, Pace, drive, go, turn
from cogwork.drivers.motion.gantry import positions_for
from cogwork.drivers.motion.locators import OnGlobe, OnMap, has_direction, on_globe, yaw
from cogwork.drivers.motion.moves import moved
from cogwork.drivers.motion.plans import Execution, Plans
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of
from cogwork.resource.neighbours import Alone, Frames, Neighbours
from cogwork.resource.poses import from_message, placed, to_message
from cogwork.resource.supplements import supplements
from cogwork.spatial.chain import WORLD
from cogwork.spatial.pose import Pose
from cogwork.spatial.tree import Part
from cogwork.wire.status import status_of

MOVEMENT_SENSOR = Api.parse("rdk:component:movement_sensor")
SLAM_SERVICE = Api.parse("rdk:service:slam")

MAP_TOLERANCE = 0.1
GLOBE_TOLERANCE = 2.6
"""Metres from the destination at which a base has arrived; a satellite tells no better."""

_GRACE = 10.0
"""Seconds that a base gets to stop."""


@dataclass(frozen=True, slots=True)
class Run:
    """A move that is under way."""

    execution: Execution
    task: asyncio.Task[None]


class BuiltinMotion(Motion):
    """A component moves by the arm, gantry or base that carries it.

    A base is moved on a plane: how high its destination is does not count. The newest plan has a
    base, and stops the one before it. A plan is also over when its base is told to stop, or when
    somebody else takes the base over during a leg.
    """

    def __init__(
        self,
        name: ResourceName,
        attributes: BuiltinMotionAttributes,
        neighbours: Neighbours,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._neighbours = neighbours
        self._clock = clock
        self._plans = Plans(clock)
        self._runs: dict[str, Run] = {}
        """The newest of each component."""
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinMotionAttributes,
        dependencies: Dependencies,
        neighbours: Neighbours,
        clock: Clock | None = None,
    ) -> BuiltinMotion:
        del dependencies
        return cls(name, attributes, neighbours, clock or SystemClock())

    async def move(
        self,
        component_name: str,
        destination: PoseInFrame,
        world_state: WorldState | None = None,
        constraints: Constraints | None = None,
        **_: Any,
    ) -> bool:
        _refuse_obstacles(world_state)
        _refuse_constraints(constraints)
        frames = self._frames()
        extra = supplements(world_state.transforms if world_state is not None else (), frames)
        carrier = carrier_of(component_name, self._neighbours, frames, extra)
        find = self._leader(carrier)
        goal = await _goal(frames, extra, component_name, destination, carrier)
        if carrier.api == ARM:
            arm = cast("Arm", find())
            await moved(arm, arm.move_to_position(to_message(goal)), self._clock)
        elif carrier.api == BASE:
            rides = component_name != carrier.short
            faces_somewhere = rides or has_direction(destination.pose)
            await self._send(cast("Find", find), goal, faces_somewhere)
        else:
            positions = await positions_for(cast("Gantry", find()), goal)
            gantry = cast("Gantry", find())
            # Without speeds it is as fast as it likes.
            await moved(gantry, gantry.move_to_position(positions, []), self._clock)
        return True

    async def get_pose(
        self,
        component_name: str,
        destination_frame: str,
        supplemental_transforms: Sequence[Transform] | None = None,
        **_: Any,
    ) -> PoseInFrame:
        frames, frame = self._frames(), destination_frame or WORLD
        extra = supplements(supplemental_transforms or (), frames)
        return placed(await frames.transform(Pose.zero(), component_name, frame, extra), frame)

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
            raise _no_way_around("obstacles")
        pace = self._pace(configuration, MAP_TOLERANCE)
        locator = OnMap(
            lambda: cast("SLAM", self._neighbours.named(slam_service_name, SLAM_SERVICE)),
            destination,
        )
        return await self._begin(component_name, locator, pace, destination)

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
            raise _no_way_around("obstacles")
        if bounding_regions:
            raise _no_way_around("bounding regions")
        pace = self._pace(configuration, GLOBE_TOLERANCE)
        locator = OnGlobe(
            lambda: cast(
                "MovementSensor", self._neighbours.named(movement_sensor_name, MOVEMENT_SENSOR)
            ),
            destination,
            heading,
        )
        return await self._begin(component_name, locator, pace, on_globe(destination, heading))

    async def stop_plan(self, component_name: str, **_: Any) -> None:
        self._plans.newest(component_name)  # or there is none to stop
        run = self._runs.get(component_name)
        if run is not None:
            await self._end([run], "stop_plan ended it")

    async def list_plan_statuses(
        self, only_active_plans: bool = False, **_: Any
    ) -> Sequence[PlanStatusWithID]:
        return self._plans.listed(only_active_plans)

    async def get_plan(
        self,
        component_name: str,
        last_plan_only: bool = False,
        execution_id: str | None = None,
        **_: Any,
    ) -> GetPlanResponse:
        del last_plan_only  # an execution has no other
        execution = self._plans.newest(component_name, execution_id or None)
        return GetPlanResponse(current_plan_with_status=execution.told)

    async def stop(self, **_: Any) -> None:
        """All plans. What else moves, and whoever waits for it, is stopped by itself."""
        await self._end(list(self._runs.values()), "everything was told to stop")

    async def close(self) -> None:
        await self._end(list(self._runs.values()), "the motion service was closed")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"moving": sorted(name for name, run in self._runs.items() if _is_active(run))}

    async def _send(self, find: Find, goal: Pose, faces_somewhere: bool) -> None:
        """To a pose that is seen from where the base stands, looking along y."""
        pace = self._pace(None, MAP_TOLERANCE)
        x, y, _ = goal.point
        distance = math.hypot(x, y)
        towards = math.degrees(math.atan2(-x, y)) if round(distance) else 0.0
        await turn(find, towards, pace, self._clock)
        await go(find, distance, pace, self._clock)
        if faces_somewhere:
            await turn(find, yaw(goal) - towards, pace, self._clock)

    async def _begin(
        self, component: str, locator: OnMap | OnGlobe, pace: Pace, destination: PoseMessage
    ) -> str:
        """What can be wrong at once is told at once."""
        find = cast("Find", self._leader(self._neighbours.name_of(component, BASE)))
        find()
        start = await locator.place()
        before = self._runs.get(component)
        if before is not None:
            self._stopping(before, "a newer plan took over")
        execution = self._plans.begin(component, [start, destination])
        going = self._go(execution, find, locator, pace, before.task if before else None)
        # It outlives the call that began it: a context of its own holds nothing of that.
        task = asyncio.get_running_loop().create_task(going, context=contextvars.Context())
        self._runs[component] = Run(execution, task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return execution.id

    async def _go(
        self,
        execution: Execution,
        find: Find,
        locator: Locator,
        pace: Pace,
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before], timeout=_GRACE)
        try:
            await drive(find, locator, pace, self._clock)
        except Exception as error:
            _, words = status_of(error, "the plan")
            self.logger.warning("%s did not arrive: %s", execution.component, words)
            self._plans.end(execution, PlanState.PLAN_STATE_FAILED, words)
        else:
            self._plans.end(execution, PlanState.PLAN_STATE_SUCCEEDED)

    async def _end(self, runs: Sequence[Run], reason: str) -> None:
        """Until their bases stand."""
        for run in runs:
            self._stopping(run, reason)
        tasks = [run.task for run in runs if not run.task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)

    def _stopping(self, run: Run, reason: str) -> None:
        self._plans.end(run.execution, PlanState.PLAN_STATE_STOPPED, reason)
        run.task.cancel()

    def _leader(self, carrier: ResourceName) -> Callable[[], object]:
        """Leads it from step to step, until somebody else stops it. Between two steps, when it
        stands and is asked where it is, nobody who stops it would be heard by it."""
        stops = self._neighbours.stops(carrier)

        def find() -> object:
            if self._neighbours.stops(carrier) != stops:
                raise Interrupted(
                    f'{carrier.api.subtype} "{carrier.short}" was told to stop, and stays where it '
                    "is"
                )
            return self._neighbours.find(carrier)

        return find

    def _frames(self) -> Frames:
        if self._neighbours.frames is None:
            raise Alone(f'motion service "{self.name}" belongs to no machine, which has the frames')
        return self._neighbours.frames

    def _pace(self, configuration: MotionConfiguration | None, tolerance: float) -> Pace:
        wanted = configuration or MotionConfiguration()
        if wanted.obstacle_detectors:
            raise _no_way_around("obstacle detectors")
        attributes = self._attributes
        return Pace(
            _positive(wanted, "linear_m_per_sec", attributes.linear_m_per_sec) * 1000,
            _positive(wanted, "angular_degs_per_sec", attributes.angular_degs_per_sec),
            # How far it may be off its way is not how far it may stay away.
            min(_positive(wanted, "plan_deviation_m", tolerance), tolerance) * 1000,
        )


async def _goal(
    frames: Frames,
    extra: Sequence[Part],
    component: str,
    destination: PoseInFrame,
    carrier: ResourceName,
) -> Pose:
    """Where the carrier has to be, so that the component is at its destination. Whatever an arm
    does not carry stays turned as it is, unless the destination says how to be turned."""
    frame = destination.reference_frame
    wanted = from_message(destination.pose)
    if carrier.api != ARM and not has_direction(destination.pose):
        here = await frames.transform(Pose.zero(), component, frame, extra)
        wanted = Pose(wanted.point, here.turned)
    goal = await frames.transform(wanted, frame, origin_of(carrier), extra)
    if component == carrier.short:
        return goal
    return goal.then(await frames.transform(Pose.zero(), carrier.short, component, extra))


def _refuse_obstacles(world_state: WorldState | None) -> None:
    if world_state is not None and any(each.geometries for each in world_state.obstacles):
        raise _no_way_around("obstacles")


def _refuse_constraints(constraints: Constraints | None) -> None:
    """Collisions that are allowed are: nothing here avoids any."""
    if constraints is None:
        return
    for kind in ("linear", "orientation", "pseudolinear"):
        if getattr(constraints, f"{kind}_constraint"):
            raise Unsupported(
                f"this motion service keeps to no {kind} constraint: how an arm gets to a pose is "
                "up to the arm; leave the constraint out, or use another motion service"
            )


def _no_way_around(what: str) -> Unsupported:
    return Unsupported(
        f"this motion service moves straight and minds no {what}: leave them out if the way is "
        "clear, or use another motion service"
    )


def _positive(configuration: MotionConfiguration, field: str, usual: float) -> float:
    """What is not said, or 0, is as usual."""
    value: float = getattr(configuration, field)
    if not 0 <= value < math.inf:
        raise InvalidRequest(f'"{field}" of a motion configuration is above 0, not {value:g}')
    return value or usual


def _is_active(run: Run) -> bool:
    return run.execution.is_active
