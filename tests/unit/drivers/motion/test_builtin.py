from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from tests.support.waiting import advance_until, pass_time
from viam.components.base import Vector3
from viam.components.gantry import Gantry
from viam.gen.service.motion.v1 import motion_pb2 as motion
from viam.proto.common import (
    GeoGeometry,
    GeometriesInFrame,
    Geometry,
    GeoPoint,
    Pose,
    PoseInFrame,
    Transform,
    WorldState,
)
from viam.proto.common import (
    ResourceName as NameMessage,
)
from viam.proto.service.motion import (
    CollisionSpecification,
    Constraints,
    MotionConfiguration,
    MotionServiceStub,
    MoveOnMapRequest,
    ObstacleDetector,
    OrientationConstraint,
    PlanState,
)
from viam.services.motion.client import MotionClient
from viam.services.slam import SLAM

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted, NotFound, Unsupported
from cogwork.drivers.arm.arm_model import ArmModel
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.fake import FakeArm
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.gantry.attributes import FakeGantryAttributes
from cogwork.drivers.gantry.fake import FakeGantry
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motion.builtin import BuiltinMotion
from cogwork.drivers.movement_sensor.attributes import FakeMovementSensorAttributes
from cogwork.drivers.movement_sensor.fake import FakeMovementSensor
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.machine_access import MachineAccess
from cogwork.spatial.frame_tree import FramePart, FrameTree
from cogwork.spatial.pose import Pose as Place

ARM = ResourceName.parse("rdk:component:arm/hand")
BASE = ResourceName.parse("rdk:component:base/rover")
GANTRY = ResourceName.parse("rdk:component:gantry/rail")
GPS = ResourceName.parse("rdk:component:movement_sensor/gps")
MAP = ResourceName.parse("rdk:service:slam/map")
HOME = GeoPoint(latitude=40.7, longitude=-73.98)


class FollowingMap(SLAM):
    """A map that shows the base. A heading of zero points along x."""

    def __init__(self, base: FakeBase) -> None:
        super().__init__("map")
        self._base = base
        self.lost = False
        self.sight = asyncio.Event()
        self.sight.set()

    async def get_position(self, **_: Any) -> Pose:
        await self.sight.wait()
        if self.lost:
            raise Unsupported("the map is lost")
        seen = (await self._base.odometry()).pose
        return Pose(x=seen.x, y=seen.y, o_z=1, theta=seen.heading + 90)

    async def get_internal_state(self, **_: Any) -> list[bytes]:
        return []

    async def get_point_cloud_map(self, return_edited_map: bool = False, **_: Any) -> list[bytes]:
        return []

    async def get_properties(self, **_: Any) -> SLAM.Properties:
        return SLAM.Properties()


class StaticFrames:
    """Frames of things that do not move by themselves."""

    def __init__(self, *parts: FramePart) -> None:
        self._tree = FrameTree(parts)

    async def transform(
        self, pose: Place, source: str, destination: str, extra: Iterable[FramePart] = ()
    ) -> Place:
        try:
            return self._tree.with_extra(extra).transform(pose, source, destination, {})
        except LookupError as error:
            raise NotFound(str(error)) from None

    def parent(self, name: str) -> str:
        for part in self._tree.parts:
            if part.name == name:
                return part.parent
        raise NotFound(f'there is no frame "{name}"')


class Uninterruptible:
    """Like a resource of a module, it does not stop when its caller is gone."""

    moves = False

    async def move_to_position(self, *_: Any, **__: Any) -> None:
        self.moves = True
        await asyncio.Event().wait()

    async def stop(self, **_: Any) -> None:
        self.moves = False

    async def is_moving(self) -> bool:
        return self.moves


class UninterruptibleArm(Uninterruptible, FakeArm):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__(ARM, FakeArmAttributes(), ArmModel.desk_arm(), clock)


class SlowGantry(Uninterruptible, FakeGantry):
    """Its get_lengths can be delayed."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(GANTRY, FakeGantryAttributes(lengths_mm=[500, 300]), clock)
        self.measured = asyncio.Event()
        self.measured.set()

    async def get_lengths(self, **_: Any) -> list[float]:
        await self.measured.wait()
        return await super().get_lengths()


class SlowFrames(StaticFrames):
    """Frames that may take long, because joints have to be asked for their positions."""

    def __init__(self, *parts: FramePart) -> None:
        super().__init__(*parts)
        self.asked = asyncio.Event()
        self.asked.set()

    async def transform(self, *given: Any, **more: Any) -> Place:
        await self.asked.wait()
        return await super().transform(*given, **more)


class Machine:
    """The parts of a machine that a motion service needs."""

    def __init__(self, clock: ManualClock) -> None:
        self.base = FakeBase(BASE, FakeBaseAttributes(), clock)
        self.gantry = FakeGantry(GANTRY, FakeGantryAttributes(lengths_mm=[500, 300]), clock)
        self.gps = FakeMovementSensor(GPS, FakeMovementSensorAttributes(), self.base)
        self.map = FollowingMap(self.base)
        self.resources: dict[ResourceName, object] = {
            BASE: self.base,
            GANTRY: self.gantry,
            GPS: self.gps,
            MAP: self.map,
        }
        self.stops = Counter[ResourceName]()
        self.access = MachineAccess(
            self._find,
            lambda: self.resources,
            StaticFrames(*_parts({"rover": "world"})),
            self.stops.__getitem__,
        )

    def _find(self, name: ResourceName) -> object:
        try:
            return self.resources[name]
        except KeyError:
            raise NotFound(f"there is no {name}") from None

    async def stop_base(self) -> None:
        """Stop the base like a client's call, which the machine counts."""
        self.stops[BASE] += 1
        await self.base.stop()

    def replace_base(
        self, carrier: UninterruptibleArm | SlowGantry
    ) -> tuple[ResourceName, SlowFrames]:
        """Put the component where the base stood in the world."""
        name = ARM if isinstance(carrier, UninterruptibleArm) else GANTRY
        self.resources[name] = carrier
        frames = SlowFrames(*_parts({name.short: "world", f"{name.short}_origin": "world"}))
        self.access.frames = frames
        return name, frames

    async def read_pose(self) -> tuple[float, float, float]:
        seen = (await self.base.odometry()).pose
        return seen.x, seen.y, math.remainder(seen.heading, 360)


def _parts(parents: dict[str, str], place: Place | None = None) -> Iterable[FramePart]:
    return (FramePart(name, parent, place or Place.identity()) for name, parent in parents.items())


@pytest.fixture
async def machine(clock: ManualClock) -> Machine:
    return Machine(clock)


@pytest.fixture
async def service(machine: Machine, clock: ManualClock) -> AsyncIterator[BuiltinMotion]:
    name = ResourceName(Api.parse("rdk:service:motion"), "m")
    attributes = BuiltinMotionAttributes(linear_m_per_sec=0.5, angular_degs_per_sec=90)
    made = await BuiltinMotion.new(name, attributes, {}, machine.access, clock)
    yield made
    await made.close()


@pytest.fixture
async def client(service: BuiltinMotion, serve: Serve) -> AsyncIterator[MotionClient]:
    async with serve(service) as channel:
        yield MotionClient("m", channel)


async def run_for(clock: ManualClock, move: Any, seconds: float) -> Any:
    """Check that the move takes that long, and return its result."""
    moving = asyncio.ensure_future(move)
    spent = 0.0
    while spent < seconds - 0.2:
        await pass_time(0.002)  # for calls and threads
        await clock.advance(0.1)
        spent += 0.1
        assert not moving.done()
    await advance_until(clock, moving.done, 0.1)
    return await moving


def pose_in(frame: str, **pose: float) -> PoseInFrame:
    return PoseInFrame(reference_frame=frame, pose=Pose(**pose))


async def get_plan(client: MotionClient, **given: Any) -> Any:
    return (await client.get_plan("rover", **given)).current_plan_with_status


async def test_base_drives_to_the_destination(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    # A right turn of 90 degrees takes one second, one meter takes two.
    assert await run_for(clock, client.move("rover", pose_in("rover", x=1000)), 3)
    assert await machine.read_pose() == pytest.approx((1000, 0, -90), abs=1e-6)


async def test_base_turns_to_the_requested_orientation(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    await run_for(
        clock, client.move("rover", pose_in("world", x=-300, y=300, o_z=1, theta=10)), 0.8
    )
    assert await machine.read_pose() == pytest.approx((-300, 300, 10), abs=1)


async def test_base_moves_so_that_its_camera_reaches_the_destination(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    """The camera is 200 mm ahead of the base; to bring it to 300 mm, the base moves 100 mm."""
    mast = Place((0.0, 200.0, 500.0), Place.identity().rotation)
    machine.access.frames = StaticFrames(
        *_parts({"rover": "world"}), *_parts({"camera": "rover"}, mast)
    )
    await run_for(clock, client.move("camera", pose_in("rover", y=300, z=500, o_z=1)), 0.2)
    assert await machine.read_pose() == pytest.approx((0, 100, 0), abs=1e-6)


async def test_move_of_a_fixed_frame_is_refused(client: MotionClient, machine: Machine) -> None:
    machine.access.frames = StaticFrames(*_parts({"lamp": "world"}))
    with refused() as told:
        await client.move("lamp", pose_in("world", x=1))
    assert told.status is Status.UNIMPLEMENTED
    assert 'cannot move "lamp"' in told.words


async def test_get_pose_without_a_machine_is_refused(
    client: MotionClient, machine: Machine
) -> None:
    machine.access.frames = None
    with refused() as told:
        await client.get_pose("rover", "world")
    assert told.status is Status.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("pose", "words"),
    [
        ({"x": 600}, "axis 1 .* would have to be at 600 mm, but its range is 0 to 500"),
        ({"y": -20}, "axis 2 .* at -20 mm"),
        ({"z": 100}, "the closest position of its 2 axes is 100 mm away"),
        ({"x": 100, "o_x": 1}, "would have to rotate by 90 degrees, but cannot"),
    ],
)
async def test_gantry_refuses_unreachable_positions(
    client: MotionClient, machine: Machine, pose: dict[str, float], words: str
) -> None:
    machine.access.frames = StaticFrames(*_parts({"rail": "world", "rail_origin": "world"}))
    with refused() as told:
        await client.move("rail", pose_in("world", **pose))
    assert told.status is Status.INVALID_ARGUMENT
    assert re.search(words, told.words)
    assert await machine.gantry.get_position() == [0, 0]


async def test_gantry_without_kinematics_has_its_axes_along_x_and_y(
    client: MotionClient, machine: Machine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(*_: Any, **__: Any) -> Any:
        raise NotImplementedError

    monkeypatch.setattr(FakeGantry, "get_kinematics", none)
    machine.access.frames = StaticFrames(*_parts({"rail": "world", "rail_origin": "world"}))
    gantry: Gantry = machine.gantry
    assert await run_for(clock, client.move("rail", pose_in("world", x=200, y=100)), 0.8)
    assert await gantry.get_position() == pytest.approx([200, 100])


@pytest.mark.parametrize(
    ("kind", "slow", "words"),
    [
        (UninterruptibleArm, "frames", 'arm "hand" was stopped during the move'),
        (SlowGantry, "frames", 'gantry "rail" was stopped during the move'),
        (SlowGantry, "lengths", 'gantry "rail" was stopped during the move'),
    ],
)
async def test_component_stopped_while_the_move_is_planned_does_not_move(
    service: BuiltinMotion,
    machine: Machine,
    clock: ManualClock,
    kind: type[UninterruptibleArm | SlowGantry],
    slow: str,
    words: str,
) -> None:
    """Planning takes a while in this test."""
    carrier = kind(clock)
    name, frames = machine.replace_base(carrier)
    known = (
        carrier.measured if slow == "lengths" and isinstance(carrier, SlowGantry) else frames.asked
    )
    known.clear()
    moving = asyncio.ensure_future(service.move(name.short, pose_in("world", x=100)))
    await clock.settle()
    machine.stops[name] += 1
    known.set()
    await asyncio.wait([moving], timeout=1)
    assert not carrier.moves
    with pytest.raises(Interrupted, match=words):
        await moving


@pytest.mark.parametrize("kind", [UninterruptibleArm, SlowGantry])
async def test_move_stops_when_its_caller_is_cancelled(
    service: BuiltinMotion,
    machine: Machine,
    clock: ManualClock,
    kind: type[UninterruptibleArm | SlowGantry],
) -> None:
    carrier = kind(clock)
    name, _ = machine.replace_base(carrier)
    moving = asyncio.ensure_future(service.move(name.short, pose_in("world", x=100)))
    await clock.settle()
    assert carrier.moves
    moving.cancel()
    await asyncio.wait([moving], timeout=10)
    assert moving.cancelled()
    assert not carrier.moves


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {
                "world_state": WorldState(
                    obstacles=[GeometriesInFrame(geometries=[Geometry(label="wall")])]
                )
            },
            "does not support obstacles",
        ),
        (
            {"constraints": Constraints(orientation_constraint=[OrientationConstraint()])},
            "does not support orientation constraint",
        ),
    ],
)
async def test_obstacles_and_orientation_constraints_are_refused(
    client: MotionClient, machine: Machine, given: dict[str, Any], words: str
) -> None:
    with refused() as told:
        await client.move("rover", pose_in("rover", y=100), **given)
    assert told.status is Status.UNIMPLEMENTED
    assert words in told.words
    assert not await machine.base.is_moving()


async def test_allowed_collisions_and_empty_obstacles_are_accepted(
    client: MotionClient, clock: ManualClock, machine: Machine
) -> None:
    allowed = Constraints(collision_specification=[CollisionSpecification()])
    no_obstacles = WorldState(obstacles=[GeometriesInFrame(reference_frame="world")])
    move = client.move("rover", pose_in("rover", y=100), no_obstacles, allowed)
    assert await run_for(clock, move, 0.2)
    assert await machine.read_pose() == pytest.approx((0, 100, 0), abs=1e-6)


async def test_get_pose_uses_supplemental_transforms(client: MotionClient) -> None:
    post = Transform(reference_frame="post", pose_in_observer_frame=pose_in("rover", x=10, o_z=1))
    flag = Transform(
        reference_frame="flag", pose_in_observer_frame=pose_in("post", y=5, o_z=1, theta=90)
    )
    seen = await client.get_pose("flag", "world", [flag, post])
    assert (seen.pose.x, seen.pose.y, seen.pose.theta) == pytest.approx((10, 5, 90))
    back = await client.get_pose("rover", "flag", [flag, post])
    assert (back.pose.x, back.pose.y) == pytest.approx((-5, 10))


@pytest.mark.parametrize(
    ("name", "parent", "words"),
    [
        ("rover", "world", "choose another name"),
        ("world", "rover", "choose another name"),
        ("", "rover", "must name its frame and its parent frame"),
        ("cup", "", "must name its frame and its parent frame"),
    ],
)
async def test_invalid_supplemental_transforms_are_refused(
    client: MotionClient, name: str, parent: str, words: str
) -> None:
    brought = Transform(reference_frame=name, pose_in_observer_frame=pose_in(parent))
    world = WorldState(transforms=[brought])
    for asking in (
        client.get_pose("rover", "world", [brought]),
        client.move("rover", pose_in("world"), world),
    ):
        with refused() as told:
            await asking
        assert told.status is Status.INVALID_ARGUMENT
        assert words in told.words


async def test_circular_supplemental_transforms_are_refused(client: MotionClient) -> None:
    brought = Transform(reference_frame="loop", pose_in_observer_frame=pose_in("loop"))
    with refused() as told:
        await client.get_pose("loop", "world", [brought])
    assert told.status is Status.NOT_FOUND
    assert "circular parents" in told.words


async def test_supplemental_frame_is_moved_by_its_parent(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    mast = Transform(reference_frame="mast", pose_in_observer_frame=pose_in("rover", y=200, o_z=1))
    world = WorldState(transforms=[mast])
    assert await run_for(clock, client.move("mast", pose_in("rover", y=300, o_z=1), world), 0.2)
    assert await machine.read_pose() == pytest.approx((0, 100, 0), abs=1e-6)


async def wait_for_plan(client: MotionClient, clock: ManualClock) -> Any:
    async with asyncio.timeout(60):
        while await client.list_plan_statuses(only_active_plans=True):
            await clock.advance(0.5)
    return await get_plan(client)


async def test_move_on_map_reaches_the_destination(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    execution = await client.move_on_map("rover", Pose(x=-12_000, y=500, o_z=1), "map")
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED
    assert plan.plan.execution_id == execution
    assert [step.step["rover"].pose.x for step in plan.plan.steps] == [0, -12_000]
    # It looks along x, which is to its right.
    assert await machine.read_pose() == pytest.approx((-12_000, 500, -90), abs=1)


async def test_move_on_globe_reaches_the_destination(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    there = GeoPoint(latitude=HOME.latitude + 0.0001, longitude=HOME.longitude - 0.0001)
    await client.move_on_globe(
        "rover",
        there,
        "gps",
        heading=270,
        configuration=MotionConfiguration(plan_deviation_m=0.01, linear_m_per_sec=1),
    )
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED
    x, y, heading = await machine.read_pose()
    assert (x, y) == pytest.approx((-8430, 11_119), abs=20)
    assert heading == pytest.approx(90, abs=1)
    last = plan.plan.steps[-1].step["rover"].pose
    assert (last.x, last.y) == (there.longitude, there.latitude)


@pytest.mark.parametrize("deviation", [20, 1e6])
async def test_large_deviation_does_not_affect_the_destination(
    client: MotionClient, machine: Machine, clock: ManualClock, deviation: float
) -> None:
    """The permitted deviation applies to the path, not to its end."""
    wide = MotionConfiguration(plan_deviation_m=deviation)
    await client.move_on_map("rover", Pose(y=15_000), "map", configuration=wide)
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED
    assert (await machine.read_pose())[:2] == pytest.approx((0, 15_000), abs=100)
    there = GeoPoint(latitude=HOME.latitude + 0.0002, longitude=HOME.longitude)
    await client.move_on_globe("rover", there, "gps", configuration=wide)
    await wait_for_plan(client, clock)
    assert (await machine.read_pose())[1] == pytest.approx(22_239, abs=2600)


async def test_any_heading_is_accepted_when_none_is_requested(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    there = GeoPoint(latitude=HOME.latitude, longitude=HOME.longitude + 0.0001)
    await client.move_on_globe("rover", there, "gps")
    await wait_for_plan(client, clock)
    assert (await machine.read_pose())[2] == pytest.approx(-90, abs=1)


async def test_plan_fails_when_the_base_makes_no_progress(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    machine.resources[GPS] = FakeMovementSensor(GPS, FakeMovementSensorAttributes(), None)
    await client.move_on_globe("rover", GeoPoint(latitude=41, longitude=-73.98), "gps")
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_FAILED
    assert "the last 3 legs hardly brought it closer" in plan.status.reason
    assert not await machine.base.is_moving()


async def test_plan_fails_when_the_map_is_lost(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    await client.move_on_map("rover", Pose(x=-12_000), "map")
    machine.map.lost = True
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_FAILED
    assert plan.status.reason == "the map is lost"


async def test_immediate_error_is_raised_without_a_plan(
    client: MotionClient, machine: Machine
) -> None:
    machine.map.lost = True
    with refused() as told:
        await client.move_on_map("rover", Pose(x=1000), "map")
    assert told.words == "the map is lost"
    assert await client.list_plan_statuses() == []


async def test_plan_fails_when_another_client_takes_the_base(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    await client.move_on_map("rover", Pose(y=3000), "map")
    await clock.advance(1)
    taking = asyncio.ensure_future(machine.base.move_straight(1000, 100))
    await clock.settle()
    plan = await get_plan(client)
    assert plan.status.state == PlanState.PLAN_STATE_FAILED
    assert "interrupted by move_straight" in plan.status.reason
    assert await machine.base.is_moving()
    await clock.advance(10)
    await taking


async def test_stop_plan_stops_the_base(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    await client.move_on_map("rover", Pose(y=3000), "map")
    await clock.advance(1)
    assert await machine.base.is_moving()
    await client.stop_plan("rover")
    assert not await machine.base.is_moving()
    assert (await get_plan(client)).status.reason == "stopped by stop_plan"


class SlowToStopBase(FakeBase):
    """Stops late, and not because its caller is gone."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(BASE, FakeBaseAttributes(), clock)
        self.asked = asyncio.Event()
        self.gives_up = asyncio.Event()

    async def move_straight(self, distance: int, velocity: float, **_: Any) -> None:
        del distance
        await self.set_velocity(Vector3(y=velocity), Vector3())
        try:
            await asyncio.Event().wait()
        finally:
            self.asked.set()
            await self.gives_up.wait()


@pytest.mark.parametrize("again", ["stop_plan", "stop", "close"])
async def test_repeated_stop_and_close_stop_the_base(
    service: BuiltinMotion, machine: Machine, clock: ManualClock, again: str
) -> None:
    base = machine.resources[BASE] = SlowToStopBase(clock)
    await service.move_on_map("rover", Pose(y=3000), "map")
    await clock.settle()
    assert await base.is_moving()
    first = asyncio.ensure_future(service.stop_plan("rover"))
    await base.asked.wait()
    call = service.stop_plan("rover") if again == "stop_plan" else getattr(service, again)()
    second = asyncio.ensure_future(call)
    await clock.settle()
    base.gives_up.set()
    async with asyncio.timeout(60):
        await asyncio.gather(first, second)
    assert not await base.is_moving()


async def test_base_stopped_between_legs_stays(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    await client.move_on_map("rover", Pose(y=12_000, o_z=1, theta=90), "map")
    machine.map.sight.clear()
    # The first of three legs is five meters long.
    await clock.advance(11)
    assert not await machine.base.is_moving()
    await machine.stop_base()
    machine.map.sight.set()
    plan = await wait_for_plan(client, clock)
    assert plan.status.state == PlanState.PLAN_STATE_FAILED
    assert plan.status.reason == 'base "rover" was stopped during the move'
    assert await machine.read_pose() == pytest.approx((0, 5000, 0), abs=1)


async def test_base_stopped_before_the_first_leg_does_not_start(
    client: MotionClient, service: BuiltinMotion, machine: Machine, clock: ManualClock
) -> None:
    machine.map.sight.clear()
    beginning = asyncio.ensure_future(service.move_on_map("rover", Pose(y=3000), "map"))
    await clock.settle()
    await machine.stop_base()
    machine.map.sight.set()
    await beginning
    assert (await wait_for_plan(client, clock)).status.state == PlanState.PLAN_STATE_FAILED
    assert await machine.read_pose() == (0, 0, 0)


async def test_newer_plan_replaces_the_older_one(
    client: MotionClient, machine: Machine, clock: ManualClock
) -> None:
    first = await client.move_on_map("rover", Pose(y=90_000), "map")
    await clock.advance(1)
    await client.move_on_map("rover", Pose(x=100, y=500), "map")
    older = await get_plan(client, execution_id=first)
    assert older.status.state == PlanState.PLAN_STATE_STOPPED
    assert older.status.reason == "replaced by a newer plan"
    assert (await wait_for_plan(client, clock)).status.state == PlanState.PLAN_STATE_SUCCEEDED
    x, y, _ = await machine.read_pose()
    assert (x, y) == pytest.approx((100, 500), abs=100)


async def test_close_leaves_the_base_at_rest(
    service: BuiltinMotion, machine: Machine, clock: ManualClock
) -> None:
    await service.move_on_map("rover", Pose(y=3000), "map")
    await clock.advance(1)
    assert await service.get_status() == {"moving": ["rover"]}
    await service.close()
    assert not await machine.base.is_moving()
    assert await service.get_status() == {"moving": []}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"heading": 360.0}, Status.INVALID_ARGUMENT),
        ({"heading": math.nan}, Status.INVALID_ARGUMENT),
        ({"obstacles": [GeoGeometry()]}, Status.UNIMPLEMENTED),
        ({"bounding_regions": [GeoGeometry()]}, Status.UNIMPLEMENTED),
        (
            {"configuration": MotionConfiguration(obstacle_detectors=[ObstacleDetector()])},
            Status.UNIMPLEMENTED,
        ),
        (
            {"configuration": MotionConfiguration(linear_m_per_sec=-1)},
            Status.INVALID_ARGUMENT,
        ),
    ],
)
async def test_move_on_globe_refuses_unsupported_options(
    client: MotionClient, given: dict[str, Any], status: Status
) -> None:
    with refused() as told:
        await client.move_on_globe("rover", HOME, "gps", **given)
    assert told.status is status
    assert " " in told.words


async def test_move_on_map_refuses_obstacles(client: MotionClient) -> None:
    with refused() as told:
        await client.move_on_map("rover", Pose(y=1), "map", obstacles=[Geometry()])
    assert told.status is Status.UNIMPLEMENTED


async def test_deprecated_resource_names_are_accepted(
    service: BuiltinMotion, serve: Serve, clock: ManualClock
) -> None:
    request = MoveOnMapRequest(name="m", destination=Pose(y=10))
    request.component_name_deprecated.CopyFrom(
        NameMessage(namespace="rdk", type="component", subtype="base", name="rover")
    )
    request.slam_service_name_deprecated.CopyFrom(
        NameMessage(namespace="rdk", type="service", subtype="slam", name="map")
    )
    async with serve(service) as channel:
        stub = MotionServiceStub(channel)
        assert (await stub.MoveOnMap(request)).execution_id
        await clock.advance(1)
        plan = await stub.GetPlan(motion.GetPlanRequest(name="m", component_name="rover"))
    assert plan.current_plan_with_status.status.state == PlanState.PLAN_STATE_SUCCEEDED
