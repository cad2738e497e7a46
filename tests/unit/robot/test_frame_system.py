"""The frame system through its client API, checked with plain matrices and scipy."""

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
from tests.support.machine.served import refused
from tests.unit.robot.bench import ARM, Bench, thing
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.utils import struct_to_dict

from cogwork.core.clock import ManualClock
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.fake import FakeArm
from cogwork.graph.name import ResourceName
from cogwork.resource.messages.pose_proto import pose_from_proto
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


def with_frame(name: str, frame: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    return {**thing(name), "frame": frame, **other}


def arm_with_frame(frame: Mapping[str, Any]) -> dict[str, Any]:
    return with_frame("reach", frame, api=str(ARM), model="mover")


async def get_pose(
    bench: Bench, name: str, seen_from: str = "", *extra: common.Transform
) -> Matrix:
    request = robot.GetPoseRequest(
        component_name=name, destination_frame=seen_from, supplemental_transforms=extra
    )
    reply = (await bench.call_robot("GetPose", request)).pose
    assert reply.reference_frame == (seen_from or "world")
    return pose_to_matrix(reply.pose)


def pose_to_matrix(message: common.Pose) -> Matrix:
    read = pose_from_proto(message)
    result = np.eye(4)
    result[:3, :3] = to_matrix(read.rotation)
    result[:3, 3] = read.point
    return result


def make_transform(x: Any, y: Any, z: Any, rotation: Rotation | None = None) -> Matrix:
    result = np.eye(4)
    result[:3, 3] = (x, y, z)
    if rotation is not None:
        result[:3, :3] = rotation.as_matrix()
    return result


LAMP_IN_WORLD = make_transform(100, 0, 1050, Rotation.from_euler("ZYX", [0.3, 0.2, 0.1]))


async def test_pose_follows_the_chain_of_parents(bench: Bench) -> None:
    await bench.apply(with_frame("lamp", LAMP), with_frame("table", TABLE), thing("nowhere"))
    assert await get_pose(bench, "lamp") == pytest.approx(LAMP_IN_WORLD, abs=1e-9)
    seen = await get_pose(bench, "table", "lamp")
    expected = np.linalg.inv(LAMP_IN_WORLD) @ make_transform(100, 0, 750)
    assert seen == pytest.approx(expected, abs=1e-9)
    assert await get_pose(bench, "lamp_origin") == pytest.approx(LAMP_IN_WORLD, abs=1e-9)
    assert await get_pose(bench, "world", "table") == pytest.approx(
        make_transform(-100, 0, -750), abs=1e-9
    )


async def test_frames_on_an_arm_move_with_it(bench: Bench) -> None:
    kinematics = json.dumps(SVA).encode()
    bench.behaviors["reach"] = lambda: ([30.0, 60.0], (1, kinematics))
    await bench.apply(
        with_frame("table", TABLE),
        arm_with_frame(REACH),
        with_frame("tool", {"parent": "reach", "translation": {"x": 10}}),
    )
    rotation = Rotation.from_euler("z", 90, degrees=True)
    elbow = 100 * math.cos(math.radians(30)), 100 * math.sin(math.radians(30))
    hand = make_transform(-100 + elbow[0], elbow[1] + 100, 750, rotation)
    assert await get_pose(bench, "reach") == pytest.approx(hand, abs=1e-9)
    assert await get_pose(bench, "tool") == pytest.approx(hand @ make_transform(10, 0, 0), abs=1e-9)
    assert await get_pose(bench, "reach_origin") == pytest.approx(
        make_transform(-100, 0, 750), abs=1e-9
    )
    assert await get_pose(bench, "tool", "reach") == pytest.approx(
        make_transform(10, 0, 0), abs=1e-9
    )


async def test_pose_of_a_prismatic_arm_equals_its_end_position(bench: Bench) -> None:
    """Joint positions are degrees for revolute and millimeters for prismatic joints."""
    attributes = FakeArmAttributes(kinematics_file=str(SLIDER), joints=[30.0, 200.0])
    slider = await FakeArm.new(ResourceName(ARM, "reach"), attributes, {}, ManualClock())
    joints = list((await slider.get_joint_positions()).values)
    kinematics = await slider.get_kinematics()
    end = pose_to_matrix(await slider.get_end_position())
    await slider.close()
    bench.behaviors["reach"] = lambda: (joints, kinematics)
    await bench.apply(arm_with_frame({"parent": "world"}))
    rotation = Rotation.from_euler("z", 30, degrees=True)
    assert end == pytest.approx(
        make_transform(0, 0, 100, rotation) @ make_transform(200, 0, 0), abs=1e-9
    )
    assert await get_pose(bench, "reach") == pytest.approx(end, abs=1e-9)


@pytest.mark.parametrize("joints", [[30.0], [30.0, 60.0, 90.0]])
async def test_wrong_number_of_joint_positions_raises(bench: Bench, joints: list[float]) -> None:
    bench.behaviors["reach"] = lambda: (joints, (1, json.dumps(SVA).encode()))
    await bench.apply(arm_with_frame({"parent": "world"}))
    with refused() as error:
        await get_pose(bench, "reach")
    assert error.status is Status.FAILED_PRECONDITION
    assert f"takes 2 joint positions, not {len(joints)}" in error.words


async def test_pose_of_an_unavailable_arm_has_the_reason(bench: Bench) -> None:
    bench.scripts["build", "reach"] = _raise
    await bench.apply(with_frame("table", TABLE), arm_with_frame(REACH))
    assert await get_pose(bench, "table") == pytest.approx(make_transform(100, 0, 750))
    with refused() as error:
        await get_pose(bench, "reach")
    assert error.status is Status.UNAVAILABLE
    assert "no arm at this port" in error.words
    (config,) = (await bench.call_robot("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"


async def test_arm_without_kinematics_affects_only_itself(bench: Bench) -> None:
    def raise_not_implemented() -> Any:
        raise NotImplementedError

    bench.behaviors["reach"] = raise_not_implemented
    await bench.apply(with_frame("table", TABLE), arm_with_frame(REACH))
    (config,) = (await bench.call_robot("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"
    with refused() as error:
        await get_pose(bench, "reach")
    assert error.status is Status.FAILED_PRECONDITION


async def test_invalid_kinematics_raise(bench: Bench) -> None:
    bench.behaviors["reach"] = lambda: ([1.0], (1, b"{}"))
    await bench.apply(arm_with_frame({"parent": "world"}))
    with refused() as error:
        await get_pose(bench, "reach")
    assert error.status is Status.FAILED_PRECONDITION
    assert 'kinematics of "reach"' in error.words


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"parent": "nothing"}, 'its parent "nothing" is not a frame'),
        ({"parent": "lamp"}, "circular parents"),
    ],
)
async def test_frame_without_a_valid_parent_is_not_found(
    bench: Bench, frame: Any, words: str
) -> None:
    await bench.apply(with_frame("table", TABLE), with_frame("lamp", frame))
    with refused() as error:
        await get_pose(bench, "lamp")
    assert error.status is Status.NOT_FOUND
    assert words in error.words
    assert await get_pose(bench, "table") == pytest.approx(make_transform(100, 0, 750))


async def test_unknown_frame_is_not_found_with_a_hint(bench: Bench) -> None:
    await bench.apply(with_frame("table", TABLE))
    with refused() as error:
        await get_pose(bench, "tabel")
    assert error.status is Status.NOT_FOUND
    assert "table" in error.words


async def test_supplemental_transforms_are_used_and_checked(bench: Bench) -> None:
    await bench.apply(with_frame("table", TABLE))
    cup = transform("cup", "table", common.Pose(x=50, o_z=1, theta=90))
    ball = transform("ball", "cup", common.Pose(x=10, o_z=1))
    seen = await get_pose(bench, "ball", "", ball, cup)
    expected = make_transform(
        150, 0, 750, Rotation.from_euler("z", 90, degrees=True)
    ) @ make_transform(10, 0, 0)
    assert seen == pytest.approx(expected, abs=1e-9)
    invalid = (
        [transform("cup", "", common.Pose())],
        [transform("table", "world", common.Pose(x=7))],
        [cup, cup],
    )
    for transforms in invalid:
        with refused() as error:
            await get_pose(bench, "cup", "", *transforms)
        assert error.status is Status.INVALID_ARGUMENT


async def test_transform_pose_changes_the_reference_frame(bench: Bench) -> None:
    await bench.apply(with_frame("table", TABLE), with_frame("lamp", LAMP))
    source = common.PoseInFrame(reference_frame="lamp", pose=common.Pose(x=1, y=2, z=3, o_z=1))
    reply = await bench.call_robot(
        "TransformPose", robot.TransformPoseRequest(source=source, destination="table")
    )
    expected = np.linalg.inv(make_transform(100, 0, 750)) @ LAMP_IN_WORLD @ make_transform(1, 2, 3)
    assert reply.pose.reference_frame == "table"
    assert pose_to_matrix(reply.pose.pose) == pytest.approx(expected, abs=1e-9)
    source.pose.x = math.nan
    with refused() as error:
        await bench.call_robot("TransformPose", robot.TransformPoseRequest(source=source))
    assert error.status is Status.INVALID_ARGUMENT


async def test_frame_system_config_lists_all_frames(bench: Bench) -> None:
    bench.behaviors["reach"] = lambda: ([0.0, 0.0], (1, json.dumps(SVA).encode()))
    await bench.apply(with_frame("lamp", LAMP), with_frame("table", TABLE), arm_with_frame(REACH))
    request = robot.FrameSystemConfigRequest(
        supplemental_transforms=[transform("cup", "table", common.Pose(o_z=1))]
    )
    configs = (await bench.call_robot("FrameSystemConfig", request)).frame_system_configs
    assert [each.frame.reference_frame for each in configs] == ["table", "lamp", "reach", "cup"]
    table, lamp, arm, _ = configs
    assert lamp.frame.pose_in_observer_frame.reference_frame == "table"
    assert lamp.frame.physical_object.box.dims_mm.z == 30
    assert lamp.frame.physical_object.center.z == 15
    assert lamp.frame.physical_object.label == "lamp"
    assert not table.HasField("kinematics")
    kinematics: Any = struct_to_dict(arm.kinematics)
    assert [joint["id"] for joint in kinematics["joints"]] == ["shoulder", "elbow"]


async def test_invalid_geometry_makes_the_resource_unavailable(bench: Bench) -> None:
    box = {**LAMP, "geometry": {"type": "box", "x": 1}}
    await bench.apply(with_frame("lamp", box), with_frame("table", TABLE))
    (config,) = (await bench.call_robot("FrameSystemConfig")).frame_system_configs
    assert config.frame.reference_frame == "table"
    with refused() as error:
        await bench.do_command("lamp")
    assert '"y" of a box is missing, or not above 0' in error.words


async def test_1000_nested_frames_agree_with_plain_matrices(bench: Bench) -> None:
    """They agree within a millionth of a millimeter and of a rotation at any depth."""
    random = np.random.default_rng(8)
    truth = {"world": np.eye(4)}
    components = []
    for number in range(1000):
        # Half of the frames have the newest as parent, so that some chains have hundreds of frames.
        parent = list(truth)[-1] if number % 2 else str(random.choice(list(truth)))
        place: Any = random.uniform(-1000, 1000, 3)
        rotation = Rotation.random(random_state=random)
        frame = {
            "parent": parent,
            "translation": dict(zip("xyz", place, strict=True)),
            "orientation": format_orientation(rotation, number),
        }
        components.append(with_frame(f"f{number}", frame))
        truth[f"f{number}"] = truth[parent] @ make_transform(place[0], place[1], place[2], rotation)
    await bench.apply(*components)
    worst = 0.0
    for name, expected in truth.items():
        worst = max(worst, float(np.abs(await get_pose(bench, name) - expected).max()))
    for one, other in random.choice(list(truth), (200, 2)):
        seen = await get_pose(bench, one, other)
        expected = np.linalg.inv(truth[other]) @ truth[one]
        worst = max(worst, float(np.abs(seen - expected).max()))
    print(f"the largest difference of 1,200 poses is {worst:.1e}")
    assert worst < 1e-6


def format_orientation(rotation: Rotation, number: int) -> dict[str, Any]:
    """Return the rotation in one of the five orientation formats, by turns."""
    x, y, z, w = rotation.as_quat()
    angle = rotation.magnitude()
    axis: Any = rotation.as_rotvec() / angle
    yaw, pitch, roll = rotation.as_euler("ZYX")
    direction = rotation.apply([0, 0, 1])
    _, _, theta = rotation.as_euler("ZYZ")
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
    async def apply_frames(self, bench: Bench) -> None:
        await bench.apply(with_frame("table", TABLE), with_frame("lamp", LAMP))

    async def transform_cloud(self, bench: Bench, cloud: bytes) -> bytes:
        request = robot.TransformPCDRequest(point_cloud_pcd=cloud, source="lamp", destination="")
        return bytes((await bench.call_robot("TransformPCD", request)).point_cloud_pcd)

    def expected(self) -> Matrix:
        meters = LAMP_IN_WORLD.copy()
        meters[:3, 3] /= 1000
        moved: Matrix = (meters @ np.c_[self.POINTS, np.ones(2)].T).T[:, :3]
        return moved

    async def test_binary_cloud_keeps_its_colors(self, bench: Bench) -> None:
        header = self.HEADER.format(more=" rgb", size=" 4", kind=" U", count=" 1", data="binary")
        colored = np.zeros(2, [("p", "<f4", 3), ("rgb", "<u4")])
        colored["p"], colored["rgb"] = self.POINTS, (0xFF8000, 7)
        moved = await self.transform_cloud(bench, header.encode() + colored.tobytes())
        assert moved.startswith(header.encode())
        points = np.frombuffer(moved[len(header) :], colored.dtype)
        assert points["p"] == pytest.approx(self.expected(), abs=1e-6)
        assert list(points["rgb"]) == [0xFF8000, 7]

    async def test_ascii_cloud_is_transformed(self, bench: Bench) -> None:
        header = self.HEADER.format(more="", size="", kind="", count="", data="ascii")
        moved = await self.transform_cloud(bench, f"{header}1 2 3\n-4 5 0.5\n".encode())
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
    async def test_invalid_cloud_is_refused(self, bench: Bench, cloud: bytes) -> None:
        with refused() as error:
            await self.transform_cloud(bench, cloud)
        assert error.status is Status.INVALID_ARGUMENT


def transform(name: str, parent: str, where: common.Pose) -> common.Transform:
    place = common.PoseInFrame(reference_frame=parent, pose=where)
    return common.Transform(reference_frame=name, pose_in_observer_frame=place)


async def _raise() -> None:
    raise RuntimeError("no arm at this port")
