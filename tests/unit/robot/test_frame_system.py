"""Where everything is, asked as a client asks, and judged by plain matrices and scipy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpclib.const import Status
from scipy.spatial.transform import Rotation
from tests.served import refused
from tests.unit.robot.bench import ARM, Bench, thing
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.utils import struct_to_dict

from cogwork.core.clock import ManualClock
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.fake import FakeArm
from cogwork.graph.name import ResourceName
from cogwork.resource.pose_proto import pose_from_proto
from cogwork.spatial.orientation import to_matrix

Matrix = np.ndarray[Any, np.dtype[np.float64]]

SLIDER = Path(__file__).parents[1] / "drivers/arm/slider.urdf"
TABLE = {"translation": {"x": 100, "y": 0, "z": 750}, "parent": "world"}
LAMP = {
    "parent": "table",
    "translation": {"z": 300},
    "orientation": {"type": "euler_angles", "value": {"roll": 0.1, "pitch": 0.2, "yaw": 0.3}},
    "geometry": {"type": "box", "x": 10, "y": 20, "z": 30, "translation": {"z": 15}},
}
REACH = {"parent": "table", "translation": {"x": -200}}
ABOUT_Z = {"type": "revolute", "axis": {"z": 1}, "min": -180, "max": 180}
SVA = {
    # Two links of 100 mm that turn about z.
    "name": "reach",
    "kinematic_param_type": "SVA",
    "links": [
        {"id": "upper", "parent": "shoulder", "translation": {"x": 100}},
        {"id": "lower", "parent": "elbow", "translation": {"x": 100}},
    ],
    "joints": [
        {
            "id": "shoulder",
            "type": "revolute",
            "parent": "world",
            "axis": {"z": 1},
            "min": -180,
            "max": 180,
        },
        {
            "id": "elbow",
            "type": "revolute",
            "parent": "upper",
            "axis": {"z": 1},
            "min": -180,
            "max": 180,
        },
    ],
}


def framed(name: str, frame: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    return {**thing(name), "frame": frame, **other}


def reach(frame: Mapping[str, Any]) -> dict[str, Any]:
    return framed("reach", frame, api=str(ARM), model="mover")


async def pose(bench: Bench, name: str, seen_from: str = "", *extra: common.Transform) -> Matrix:
    request = robot.GetPoseRequest(
        component_name=name, destination_frame=seen_from, supplemental_transforms=extra
    )
    reply = (await bench.ask("GetPose", request)).pose
    assert reply.reference_frame == (seen_from or "world")
    return matrix(reply.pose)


def matrix(message: common.Pose) -> Matrix:
    read = pose_from_proto(message)
    whole = np.eye(4)
    whole[:3, :3] = to_matrix(read.rotation)
    whole[:3, 3] = read.point
    return whole


def at(x: Any, y: Any, z: Any, turned: Rotation | None = None) -> Matrix:
    whole = np.eye(4)
    whole[:3, 3] = (x, y, z)
    if turned is not None:
        whole[:3, :3] = turned.as_matrix()
    return whole


LAMP_IN_WORLD = at(100, 0, 1050, Rotation.from_euler("ZYX", [0.3, 0.2, 0.1]))


async def test_frames_stand_on_one_another(bench: Bench) -> None:
    await bench.apply(framed("lamp", LAMP), framed("table", TABLE), thing("nowhere"))
    assert await pose(bench, "lamp") == pytest.approx(LAMP_IN_WORLD, abs=1e-9)
    seen = await pose(bench, "table", "lamp")
    expected = np.linalg.inv(LAMP_IN_WORLD) @ at(100, 0, 750)
    assert seen == pytest.approx(expected, abs=1e-9)
    assert await pose(bench, "lamp_origin") == pytest.approx(LAMP_IN_WORLD, abs=1e-9)
    assert await pose(bench, "world", "table") == pytest.approx(at(-100, 0, -750), abs=1e-9)


async def test_an_arm_carries_what_stands_on_it(bench: Bench) -> None:
    kinematics = json.dumps(SVA).encode()
    bench.deeds["reach"] = lambda: ([30.0, 60.0], (1, kinematics))
    await bench.apply(
        framed("table", TABLE),
        reach(REACH),
        framed("tool", {"parent": "reach", "translation": {"x": 10}}),
    )
    turned = Rotation.from_euler("z", 90, degrees=True)
    elbow = 100 * math.cos(math.radians(30)), 100 * math.sin(math.radians(30))
    hand = at(-100 + elbow[0], elbow[1] + 100, 750, turned)
    assert await pose(bench, "reach") == pytest.approx(hand, abs=1e-9)
    assert await pose(bench, "tool") == pytest.approx(hand @ at(10, 0, 0), abs=1e-9)
    assert await pose(bench, "reach_origin") == pytest.approx(at(-100, 0, 750), abs=1e-9)
    assert await pose(bench, "tool", "reach") == pytest.approx(at(10, 0, 0), abs=1e-9)


async def test_an_arm_that_slides_is_where_it_says_itself(bench: Bench) -> None:
    """Its joints are told in degrees where they turn, and in millimetres where they slide."""
    attributes = FakeArmAttributes(kinematics_file=str(SLIDER), joints=[30.0, 200.0])
    slider = await FakeArm.new(ResourceName(ARM, "reach"), attributes, {}, ManualClock())
    joints = list((await slider.get_joint_positions()).values)
    kinematics = await slider.get_kinematics()
    end = matrix(await slider.get_end_position())
    await slider.close()
    bench.deeds["reach"] = lambda: (joints, kinematics)
    await bench.apply(reach({"parent": "world"}))
    turned = Rotation.from_euler("z", 30, degrees=True)
    assert end == pytest.approx(at(0, 0, 100, turned) @ at(200, 0, 0), abs=1e-9)
    assert await pose(bench, "reach") == pytest.approx(end, abs=1e-9)


@pytest.mark.parametrize("joints", [[30.0], [30.0, 60.0, 90.0]])
async def test_joints_that_an_arm_does_not_have(bench: Bench, joints: list[float]) -> None:
    bench.deeds["reach"] = lambda: (joints, (1, json.dumps(SVA).encode()))
    await bench.apply(reach({"parent": "world"}))
    with refused() as told:
        await pose(bench, "reach")
    assert told.status is Status.FAILED_PRECONDITION
    assert f"takes 2 joint positions, not {len(joints)}" in told.words


async def test_an_arm_that_is_not_there_says_why(bench: Bench) -> None:
    bench.scripts["build", "reach"] = _raise
    await bench.apply(framed("table", TABLE), reach(REACH))
    assert await pose(bench, "table") == pytest.approx(at(100, 0, 750))
    with refused() as told:
        await pose(bench, "reach")
    assert told.status is Status.UNAVAILABLE
    assert "no arm at this port" in told.words
    (config,) = (await bench.ask("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"


async def test_one_arm_that_does_not_say_costs_only_itself(bench: Bench) -> None:
    def unwilling() -> Any:
        raise NotImplementedError

    bench.deeds["reach"] = unwilling
    await bench.apply(framed("table", TABLE), reach(REACH))
    (config,) = (await bench.ask("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"
    with refused() as told:
        await pose(bench, "reach")
    assert told.status is Status.FAILED_PRECONDITION


async def test_kinematics_that_make_no_sense(bench: Bench) -> None:
    bench.deeds["reach"] = lambda: ([1.0], (1, b"{}"))
    await bench.apply(reach({"parent": "world"}))
    with refused() as told:
        await pose(bench, "reach")
    assert told.status is Status.FAILED_PRECONDITION
    assert 'kinematics of "reach"' in told.words


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"parent": "nothing"}, 'its parent "nothing" is not a frame'),
        ({"parent": "lamp"}, "circular parents"),
    ],
)
async def test_a_frame_without_a_place(bench: Bench, frame: Any, words: str) -> None:
    await bench.apply(framed("table", TABLE), framed("lamp", frame))
    with refused() as told:
        await pose(bench, "lamp")
    assert told.status is Status.NOT_FOUND
    assert words in told.words
    assert await pose(bench, "table") == pytest.approx(at(100, 0, 750))


async def test_a_name_that_no_frame_has(bench: Bench) -> None:
    await bench.apply(framed("table", TABLE))
    with refused() as told:
        await pose(bench, "tabel")
    assert told.status is Status.NOT_FOUND
    assert "table" in told.words


async def test_frames_that_a_call_brings(bench: Bench) -> None:
    await bench.apply(framed("table", TABLE))
    cup = transform("cup", "table", common.Pose(x=50, o_z=1, theta=90))
    ball = transform("ball", "cup", common.Pose(x=10, o_z=1))
    seen = await pose(bench, "ball", "", ball, cup)
    expected = at(150, 0, 750, Rotation.from_euler("z", 90, degrees=True)) @ at(10, 0, 0)
    assert seen == pytest.approx(expected, abs=1e-9)
    unsound = (
        [transform("cup", "", common.Pose())],
        [transform("table", "world", common.Pose(x=7))],
        [cup, cup],
    )
    for transforms in unsound:
        with refused() as told:
            await pose(bench, "cup", "", *transforms)
        assert told.status is Status.INVALID_ARGUMENT


async def test_a_pose_seen_from_elsewhere(bench: Bench) -> None:
    await bench.apply(framed("table", TABLE), framed("lamp", LAMP))
    source = common.PoseInFrame(reference_frame="lamp", pose=common.Pose(x=1, y=2, z=3, o_z=1))
    reply = await bench.ask(
        "TransformPose", robot.TransformPoseRequest(source=source, destination="table")
    )
    expected = np.linalg.inv(at(100, 0, 750)) @ LAMP_IN_WORLD @ at(1, 2, 3)
    assert reply.pose.reference_frame == "table"
    assert matrix(reply.pose.pose) == pytest.approx(expected, abs=1e-9)
    source.pose.x = math.nan
    with refused() as told:
        await bench.ask("TransformPose", robot.TransformPoseRequest(source=source))
    assert told.status is Status.INVALID_ARGUMENT


async def test_the_whole_configuration_of_frames(bench: Bench) -> None:
    bench.deeds["reach"] = lambda: ([0.0, 0.0], (1, json.dumps(SVA).encode()))
    await bench.apply(framed("lamp", LAMP), framed("table", TABLE), reach(REACH))
    request = robot.FrameSystemConfigRequest(
        supplemental_transforms=[transform("cup", "table", common.Pose(o_z=1))]
    )
    configs = (await bench.ask("FrameSystemConfig", request)).frame_system_configs
    assert [each.frame.reference_frame for each in configs] == ["table", "lamp", "reach", "cup"]
    table, lamp, arm, _ = configs
    assert lamp.frame.pose_in_observer_frame.reference_frame == "table"
    assert lamp.frame.physical_object.box.dims_mm.z == 30
    assert lamp.frame.physical_object.center.z == 15
    assert lamp.frame.physical_object.label == "lamp"
    assert not table.HasField("kinematics")
    kinematics: Any = struct_to_dict(arm.kinematics)
    assert [joint["id"] for joint in kinematics["joints"]] == ["shoulder", "elbow"]


async def test_a_shape_that_is_none_is_found_when_the_file_is_read(bench: Bench) -> None:
    box = {**LAMP, "geometry": {"type": "box", "x": 1}}
    await bench.apply(framed("lamp", box), framed("table", TABLE))
    (config,) = (await bench.ask("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"
    with refused() as told:
        await bench.do("lamp")
    assert '"y" of a box is missing, or not above 0' in told.words


async def test_a_thousand_nested_frames_agree_with_plain_matrices(bench: Bench) -> None:
    """Within a millionth of a millimetre, and of a rotation, however deep they are."""
    random = np.random.default_rng(8)
    truth = {"world": np.eye(4)}
    components = []
    for number in range(1000):
        # Half of them stand on the newest, so that some stand on hundreds of others.
        parent = list(truth)[-1] if number % 2 else str(random.choice(list(truth)))
        place: Any = random.uniform(-1000, 1000, 3)
        turned = Rotation.random(random_state=random)
        frame = {
            "parent": parent,
            "translation": dict(zip("xyz", place, strict=True)),
            "orientation": written(turned, number),
        }
        components.append(framed(f"f{number}", frame))
        truth[f"f{number}"] = truth[parent] @ at(place[0], place[1], place[2], turned)
    await bench.apply(*components)
    worst = 0.0
    for name, expected in truth.items():
        worst = max(worst, float(np.abs(await pose(bench, name) - expected).max()))
    for one, other in random.choice(list(truth), (200, 2)):
        seen = await pose(bench, one, other)
        expected = np.linalg.inv(truth[other]) @ truth[one]
        worst = max(worst, float(np.abs(seen - expected).max()))
    print(f"the largest difference of 1,200 poses is {worst:.1e}")
    assert worst < 1e-6


def written(turned: Rotation, number: int) -> dict[str, Any]:
    """Each of the ways in turn."""
    x, y, z, w = turned.as_quat()
    angle = turned.magnitude()
    axis: Any = turned.as_rotvec() / angle
    yaw, pitch, roll = turned.as_euler("ZYX")
    direction = turned.apply([0, 0, 1])
    _, _, theta = turned.as_euler("ZYZ")
    vector = dict(zip("xyz", direction, strict=True))
    return [
        {"type": "quaternion", "value": {"w": w, "x": x, "y": y, "z": z}},
        {"type": "axis_angles", "value": {**dict(zip("xyz", axis, strict=True)), "th": angle}},
        {"type": "euler_angles", "value": {"roll": roll, "pitch": pitch, "yaw": yaw}},
        {"type": "ov_radians", "value": {**vector, "th": theta}},
        {"type": "ov_degrees", "value": {**vector, "th": math.degrees(theta)}},
    ][number % 5]


class TestPointClouds:
    POINTS = np.array([[1, 2, 3], [-4, 5, 0.5]], "<f4")
    HEADER = (
        "VERSION .7\nFIELDS x y z{more}\nSIZE 4 4 4{size}\nTYPE F F F{kind}\nCOUNT 1 1 1{count}\n"
        "WIDTH 2\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA {data}\n"
    )

    @pytest.fixture(autouse=True)
    async def lit(self, bench: Bench) -> None:
        await bench.apply(framed("table", TABLE), framed("lamp", LAMP))

    async def seen(self, bench: Bench, cloud: bytes) -> bytes:
        request = robot.TransformPCDRequest(point_cloud_pcd=cloud, source="lamp", destination="")
        return bytes((await bench.ask("TransformPCD", request)).point_cloud_pcd)

    def expected(self) -> Matrix:
        metres = LAMP_IN_WORLD.copy()
        metres[:3, 3] /= 1000
        moved: Matrix = (metres @ np.c_[self.POINTS, np.ones(2)].T).T[:, :3]
        return moved

    async def test_binary_with_colours(self, bench: Bench) -> None:
        header = self.HEADER.format(more=" rgb", size=" 4", kind=" U", count=" 1", data="binary")
        coloured = np.zeros(2, [("p", "<f4", 3), ("rgb", "<u4")])
        coloured["p"], coloured["rgb"] = self.POINTS, (0xFF8000, 7)
        moved = await self.seen(bench, header.encode() + coloured.tobytes())
        assert moved.startswith(header.encode())
        points = np.frombuffer(moved[len(header) :], coloured.dtype)
        assert points["p"] == pytest.approx(self.expected(), abs=1e-6)
        assert list(points["rgb"]) == [0xFF8000, 7]

    async def test_text(self, bench: Bench) -> None:
        header = self.HEADER.format(more="", size="", kind="", count="", data="ascii")
        moved = await self.seen(bench, f"{header}1 2 3\n-4 5 0.5\n".encode())
        points = np.frombuffer(moved.partition(b"DATA binary\n")[2], "<f4").reshape(2, 3)
        assert points == pytest.approx(self.expected(), abs=1e-6)

    @pytest.mark.parametrize(
        "cloud",
        [
            b"",
            b"noise" * 10_000,
            HEADER.format(more="", size="", kind="", count="", data="binary").encode() + b"short",
            HEADER.format(more="", size="", kind="", count="", data="ascii").encode() + b"a b c\n",
            HEADER.format(more="", size="", kind="", count="", data="binary_compressed").encode(),
            b"FIELDS a b\nSIZE 4 4\nTYPE F F\nPOINTS 1\nDATA binary\n12345678",
            b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 999999999999\nDATA binary\n",
            b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS -1\nDATA binary\n",
            # A request of a hundred bytes would take gigabytes.
            b"FIELDS x y z a\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 500000000\n"
            b"POINTS 1\nDATA ascii\n1 2 3 4\n",
            b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 2 1 1\nPOINTS 1\nDATA binary\n"
            + bytes(16),
            b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 2\nDATA ascii\n1 2 3\n",
            b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 9\nDATA ascii\n" + b"1 2 3\n" * 200_000,
        ],
    )
    async def test_what_is_none(self, bench: Bench, cloud: bytes) -> None:
        with refused() as told:
            await self.seen(bench, cloud)
        assert told.status is Status.INVALID_ARGUMENT


def transform(name: str, parent: str, where: common.Pose) -> common.Transform:
    place = common.PoseInFrame(reference_frame=parent, pose=where)
    return common.Transform(reference_frame=name, pose_in_observer_frame=place)


async def _raise() -> None:
    raise RuntimeError("no arm at this port")
