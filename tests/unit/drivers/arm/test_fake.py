from __future__ import annotations

import asyncio
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from tests.support.waiting import run_others
from tests.unit.drivers.moving import complete_move, start_move, wait_until_still
from viam.components.arm import JointPositions, MoveOptions, Pose
from viam.components.arm.client import ArmClient
from viam.proto.common import KinematicsFileFormat

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.arm.arm_model import BadArmModel
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.fake import FakeArm
from cogwork.graph.name import ResourceName
from cogwork.spatial.kinematics import parse_sva

NAME = ResourceName.parse("rdk:component:arm/a")
SLIDER = Path(__file__).parent / "slider.urdf"
HOME = [0.0] * 6


def joint_positions(*values: float) -> JointPositions:
    return JointPositions(values=values)


async def read_joint_positions(client: ArmClient) -> list[float]:
    return list((await client.get_joint_positions()).values)


async def test_move_to_joint_positions_finishes_all_joints_together(
    client: ArmClient, clock: ManualClock
) -> None:
    assert await read_joint_positions(client) == HOME
    move = await start_move(
        client, client.move_to_joint_positions(joint_positions(20, -10, 0, 0, 5, 0))
    )
    await clock.advance(1)
    assert await read_joint_positions(client) == [10, -5, 0, 0, 2.5, 0]
    await clock.advance(1)
    await asyncio.wait_for(move, 10)
    assert await read_joint_positions(client) == [20, -10, 0, 0, 5, 0]
    assert not await client.is_moving()


async def test_move_through_joint_positions_visits_each_position(
    client: ArmClient, clock: ManualClock
) -> None:
    through = [joint_positions(20, 0, 0, 0, 0, 0), joint_positions(0, 10, 0, 0, 0, 0)]
    move = await start_move(client, client.move_through_joint_positions(through))
    await clock.advance(2)
    assert await read_joint_positions(client) == pytest.approx([20, 0, 0, 0, 0, 0])
    await clock.advance(1)
    assert await read_joint_positions(client) == pytest.approx([10, 5, 0, 0, 0, 0])
    await clock.advance(1)
    await asyncio.wait_for(move, 10)
    assert await read_joint_positions(client) == [0, 10, 0, 0, 0, 0]


async def test_move_through_no_positions_leaves_the_arm_in_place(client: ArmClient) -> None:
    await client.move_through_joint_positions([], timeout=10)
    assert await read_joint_positions(client) == HOME


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (None, 2),
        (MoveOptions(), 2),
        (MoveOptions(max_vel_degs_per_sec=5), 4),
        (MoveOptions(max_vel_degs_per_sec=1000), 2),
        (MoveOptions(max_vel_degs_per_sec_joints=[10, 1, 10, 10, 10, 10]), 10),
        # Limits per joint override the limit for all joints.
        (MoveOptions(max_vel_degs_per_sec=1, max_vel_degs_per_sec_joints=[5] * 6), 4),
        (MoveOptions(max_acc_degs_per_sec2=10), 3),
        (MoveOptions(max_acc_degs_per_sec2_joints=[5, 10, 10, 10, 10, 10]), 4),
        (MoveOptions(max_vel_degs_per_sec=5, max_acc_degs_per_sec2=10), 4.5),
    ],
)
async def test_move_obeys_requested_velocity_and_acceleration_limits(
    client: ArmClient, clock: ManualClock, options: MoveOptions | None, seconds: float
) -> None:
    move = client.move_through_joint_positions([joint_positions(20, 10, 0, 0, 0, 0)], options)
    await complete_move(client, clock, move, seconds)
    assert await read_joint_positions(client) == [20, 10, 0, 0, 0, 0]


async def test_move_obeys_requested_tool_speed_limit(client: ArmClient, clock: ManualClock) -> None:
    """The shoulder moves the tool on a circle with a radius of 660 mm."""
    options = MoveOptions(max_tcp_speed=0.066)
    move = client.move_through_joint_positions([joint_positions(0, 90, 0, 0, 0, 0)], options)
    moving = await start_move(client, move)
    seconds = math.pi / 2 * 660 / 66
    places = []
    for _ in range(10):
        places.append(await client.get_end_position())
        await clock.advance(seconds / 10)
    await asyncio.wait_for(moving, 10)
    ways = [
        math.dist((one.x, one.y, one.z), (two.x, two.y, two.z))
        for one, two in itertools.pairwise(places)
    ]
    assert max(ways) <= 66 * seconds / 10
    assert max(ways) == pytest.approx(66 * seconds / 10, rel=0.01)
    assert await read_joint_positions(client) == pytest.approx([0, 90, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (MoveOptions(max_vel_degs_per_sec=-1), "max_vel_degs_per_sec is -1: give a number above 0"),
        (MoveOptions(max_vel_degs_per_sec=math.inf), "max_vel_degs_per_sec is inf"),
        (MoveOptions(max_acc_degs_per_sec2=-1), "max_acc_degs_per_sec2 is -1"),
        (MoveOptions(max_tcp_speed=math.nan), "max_tcp_speed is nan"),
        (
            MoveOptions(max_vel_degs_per_sec_joints=[1, 2]),
            "max_vel_degs_per_sec_joints has 2 values: give one for each of the 6 joints",
        ),
        (MoveOptions(max_acc_degs_per_sec2_joints=[-1] * 6), "max_acc_degs_per_sec2_joints is -1"),
    ],
)
async def test_move_refuses_invalid_motion_limits(
    client: ArmClient, options: MoveOptions, words: str
) -> None:
    with refused() as told:
        await client.move_through_joint_positions([joint_positions(*HOME)], options)
    assert told.status is Status.INVALID_ARGUMENT
    assert words in told.words


@pytest.mark.parametrize(
    ("joints", "words"),
    [
        (
            [171, 0, 0, 0, 0, 0],
            'arm "a" cannot move there: joint "waist" of "desk_arm" cannot move to 171 degrees; '
            "its limits are -170 degrees to 170 degrees",
        ),
        ([0, 0, 0, 0, math.nan, 0], 'joint "wrist_pitch" of "desk_arm" cannot move to nan'),
        ([0, 0, 0], '"desk_arm" takes 6 joint positions, not 3'),
        ([0] * 7, '"desk_arm" takes 6 joint positions, not 7'),
    ],
)
async def test_move_refuses_joint_positions_outside_the_limits(
    client: ArmClient, joints: list[float], words: str
) -> None:
    for call in (
        client.move_to_joint_positions(joint_positions(*joints)),
        client.move_through_joint_positions([joint_positions(*HOME), joint_positions(*joints)]),
    ):
        with refused() as told:
            await call
        assert told.status is Status.INVALID_ARGUMENT
        assert words in told.words
    assert await read_joint_positions(client) == HOME


async def test_move_accepts_a_joint_position_exactly_at_the_limit(
    client: ArmClient, clock: ManualClock
) -> None:
    await complete_move(
        client, clock, client.move_to_joint_positions(joint_positions(170, 0, 0, 0, 0, 0)), 17
    )
    assert await read_joint_positions(client) == [170, 0, 0, 0, 0, 0]


async def test_end_position_follows_the_joints(client: ArmClient, clock: ManualClock) -> None:
    end = await client.get_end_position()
    assert (end.x, end.y, end.z, end.o_z) == pytest.approx((0, 0, 810, 1))
    await complete_move(
        client, clock, client.move_to_joint_positions(joint_positions(0, 90, 0, 0, 0, 0)), 9
    )
    end = await client.get_end_position()
    assert (end.x, end.y, end.z) == pytest.approx((660, 0, 150))
    assert (end.o_x, end.o_y, end.o_z) == pytest.approx((1, 0, 0), abs=1e-9)


async def test_move_to_position_reaches_the_requested_pose(
    client: ArmClient, clock: ManualClock
) -> None:
    wanted = Pose(x=350, y=100, z=200, o_z=-1, theta=30)
    move = await start_move(client, client.move_to_position(wanted))
    await clock.advance(60)
    await asyncio.wait_for(move, 10)
    reached = await client.get_end_position()
    for field in ("x", "y", "z", "o_x", "o_y", "o_z", "theta"):
        assert getattr(reached, field) == pytest.approx(getattr(wanted, field), abs=0.02)


@pytest.mark.parametrize(
    ("pose", "words"),
    [
        (
            Pose(x=2000, o_z=1),
            'arm "a" cannot move there: that point is 2000 mm from its base, '
            "but its maximum reach is 810 mm",
        ),
        (Pose(x=640, z=150, o_x=-1), "it reaches that point, but not with that orientation"),
        (Pose(z=-500, o_z=1), "no joint positions reach that point"),
    ],
)
async def test_move_to_position_refuses_unreachable_poses(
    client: ArmClient, pose: Pose, words: str
) -> None:
    with refused() as told:
        await client.move_to_position(pose)
    assert told.status is Status.INVALID_ARGUMENT
    assert words in told.words
    assert await read_joint_positions(client) == HOME


@pytest.mark.parametrize("pose", [Pose(x=math.nan, o_z=1), Pose(x=1, z=-1e308, o_z=1)])
async def test_move_to_position_refuses_a_pose_without_a_place(
    client: ArmClient, pose: Pose
) -> None:
    with refused() as told:
        await client.move_to_position(pose)
    assert told.status is Status.INVALID_ARGUMENT


async def test_stop_interrupts_inverse_kinematics(arm: FakeArm, clock: ManualClock) -> None:
    move = asyncio.ensure_future(arm.move_to_position(Pose(x=350, z=200, o_z=-1)))
    await run_others()
    await arm.stop()
    with pytest.raises(Interrupted, match="did not finish move_to_position: interrupted by stop"):
        await asyncio.wait_for(move, 10)
    await clock.advance(60)
    assert not await arm.is_moving()
    assert list((await arm.get_joint_positions()).values) == HOME


async def test_stop_interrupts_a_move_and_holds_the_arm(
    client: ArmClient, clock: ManualClock
) -> None:
    move = await start_move(
        client, client.move_to_joint_positions(joint_positions(50, 0, 0, 0, 0, 0))
    )
    await clock.advance(1)
    await client.stop()
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'arm "a" did not finish move_to_joint_positions: interrupted by stop'
    await clock.advance(1)
    assert await read_joint_positions(client) == pytest.approx([10, 0, 0, 0, 0, 0])


async def test_move_stops_when_the_client_cancels(client: ArmClient, clock: ManualClock) -> None:
    move = await start_move(
        client, client.move_to_joint_positions(joint_positions(50, 0, 0, 0, 0, 0))
    )
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await wait_until_still(client)
    assert await read_joint_positions(client) == pytest.approx([10, 0, 0, 0, 0, 0])


async def test_move_stops_when_the_deadline_expires(client: ArmClient) -> None:
    with pytest.raises((GRPCError, TimeoutError)):
        await client.move_to_joint_positions(joint_positions(50, 0, 0, 0, 0, 0), timeout=0.05)
    await wait_until_still(client)


async def test_manual_mode_interrupts_and_refuses_moves(
    client: ArmClient, clock: ManualClock
) -> None:
    move = await start_move(
        client, client.move_to_joint_positions(joint_positions(50, 0, 0, 0, 0, 0))
    )
    await client.set_manual_mode(True)
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert "interrupted by set_manual_mode" in told.words
    assert await client.get_manual_mode()
    calls: dict[str, Any] = {
        "move_to_joint_positions": client.move_to_joint_positions(joint_positions(*HOME)),
        "move_through_joint_positions": client.move_through_joint_positions(
            [joint_positions(*HOME)]
        ),
        "move_to_position": client.move_to_position(Pose(x=350, z=200, o_z=-1)),
    }
    for command, call in calls.items():
        with refused() as told:
            await call
        assert told.status is Status.FAILED_PRECONDITION
        assert told.words == (
            f'arm "a" is in manual mode and rejects {command}: end manual mode with set_manual_mode'
        )
    await client.stop()
    await client.set_manual_mode(False)
    assert not await client.get_manual_mode()
    await complete_move(
        client, clock, client.move_to_joint_positions(joint_positions(10, 0, 0, 0, 0, 0)), 1
    )


async def test_manual_mode_ends_after_its_duration(client: ArmClient, clock: ManualClock) -> None:
    await client.set_manual_mode(True, 30)
    await clock.advance(29.9)
    assert await client.get_manual_mode()
    await clock.advance(0.1)
    assert not await client.get_manual_mode()


async def test_manual_mode_refuses_a_negative_duration(arm: FakeArm) -> None:
    with pytest.raises(ValueError, match="-1 seconds"):
        await arm.set_manual_mode(True, -1)


async def test_properties_and_status_of_the_arm(client: ArmClient) -> None:
    properties = await client.get_properties()
    assert properties.support_manual_mode
    assert properties.support_cartesian_commands
    assert await client.get_3d_models() == {}
    status = await client.get_status()
    assert status["joint_positions"] == {"values": HOME}
    assert status["end_position"] == {
        "x": 0,
        "y": 0,
        "z": pytest.approx(810),
        "o_x": 0,
        "o_y": 0,
        "o_z": 1,
        "theta": 0,
    }
    assert not status["is_moving"]
    assert not status["manual_mode"]


async def test_get_kinematics_returns_the_chain_as_sva(client: ArmClient) -> None:
    form, data, *_ = await client.get_kinematics()
    assert form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA
    chain = parse_sva(data.decode())
    assert [joint.id for joint in chain.joints] == [
        "waist",
        "shoulder",
        "elbow",
        "forearm_roll",
        "wrist_pitch",
        "flange_roll",
    ]


async def test_geometries_follow_the_joints(client: ArmClient, clock: ManualClock) -> None:
    await complete_move(
        client, clock, client.move_to_joint_positions(joint_positions(0, 90, 0, 0, 0, 0)), 9
    )
    shapes = {shape.label: shape for shape in await client.get_geometries()}
    assert shapes["base"].box.dims_mm.z == 90
    upper = shapes["upper_arm"]
    assert (upper.capsule.radius_mm, upper.capsule.length_mm) == (40, 340)
    assert (upper.center.x, upper.center.z) == pytest.approx((140, 150))
    assert upper.center.o_x == pytest.approx(1)


async def test_initial_joint_positions_are_configurable(clock: ManualClock) -> None:
    attributes = FakeArmAttributes(joints=[1, 2, 3, 4, 5, 6])
    arm = await FakeArm.new(NAME, attributes, {}, clock)
    assert list((await arm.get_joint_positions()).values) == [1, 2, 3, 4, 5, 6]
    await arm.close()


@pytest.mark.parametrize(
    ("joints", "words"),
    [([1.0], "takes 6 joint positions, not 1"), ([200.0, 0, 0, 0, 0, 0], 'joint "waist"')],
)
async def test_invalid_initial_joint_positions_are_refused(joints: list[float], words: str) -> None:
    with pytest.raises(BadArmModel, match=words):
        await FakeArm.new(NAME, FakeArmAttributes(joints=joints), {})


async def test_kinematics_file_can_be_urdf(serve: Serve, clock: ManualClock) -> None:
    attributes = FakeArmAttributes(kinematics_file=str(SLIDER), speed_degs_per_sec=100)
    arm = await FakeArm.new(NAME, attributes, {}, clock)
    async with serve(arm) as channel:
        client = ArmClient("a", channel)
        assert await read_joint_positions(client) == [0, 50]
        await complete_move(
            client, clock, client.move_to_joint_positions(joint_positions(450, 250)), 4.5
        )
        end = await client.get_end_position()
        assert (end.x, end.y, end.z) == pytest.approx((0, 250, 100), abs=1e-9)
        form, data, *_ = await client.get_kinematics()
        assert form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA
        assert parse_sva(data.decode()).pose([0, 250]).point == pytest.approx((250, 0, 100))
        foot, boom = await client.get_geometries()
        assert (foot.capsule.radius_mm, foot.capsule.length_mm) == pytest.approx((40, 180))
        assert (boom.center.x, boom.center.y) == pytest.approx((0, 350), abs=1e-6)
    await arm.close()


async def test_kinematics_file_can_be_sva_json(tmp_path: Path, clock: ManualClock) -> None:
    arm = await FakeArm.new(NAME, FakeArmAttributes(), {}, clock)
    _, data, *_ = await arm.get_kinematics()
    described = {**json.loads(data), "name": "mine", "note": "kept"}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(described))
    mine = await FakeArm.new(NAME, FakeArmAttributes(kinematics_file=str(file)), {}, clock)
    assert (await mine.get_kinematics())[1] == file.read_bytes()
    with pytest.raises(ValueError, match='joint "waist" of "mine"'):
        await mine.move_to_joint_positions(joint_positions(171, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "neither links nor joints"),
        ("not JSON", "not JSON"),
        ("<robot", "not XML"),
        (
            '{"links": [{"id": "a", "parent": "world", "translation": {"x": 1}}]}',
            "it has no movable joint",
        ),
        (
            '{"links": [{"id": "a", "parent": "world", "geometry": {"type": "cone"}}], "joints": '
            '[{"id": "j", "parent": "a", "type": "continuous", "axis": {"z": 1}}]}',
            '"cone" is not a shape',
        ),
    ],
)
async def test_invalid_kinematics_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "arm.json"
    file.write_text(text)
    with pytest.raises(BadArmModel) as refused:
        await FakeArm.new(NAME, FakeArmAttributes(kinematics_file=str(file)), {})
    assert str(refused.value).startswith(f"{file} does not describe an arm: ")
    assert words in str(refused.value)


async def test_binary_kinematics_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "arm.json"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadArmModel, match="does not describe an arm"):
        await FakeArm.new(NAME, FakeArmAttributes(kinematics_file=str(file)), {})


async def test_close_interrupts_a_move(arm: FakeArm, clock: ManualClock) -> None:
    move = asyncio.ensure_future(arm.move_to_joint_positions(joint_positions(50, 0, 0, 0, 0, 0)))
    await clock.settle()
    await arm.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move
