"""Frames of remotes: where things of another machine are on this one."""

from __future__ import annotations

from pathlib import Path

from tests.interop.test_remotes import remote, wait_for_state
from tests.interop.test_sdk_client import component
from tests.support.machine.running import run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.sizes import limit
from tests.support.waiting import poll
from viam.components.arm import Arm, JointPositions
from viam.proto.common import Pose, PoseInFrame
from viam.robot.client import RobotClient

UP = Pose(o_z=1)


def placed(subtype: str, name: str, parent: str, x: float) -> dict[str, object]:
    frame = {"parent": parent, "translation": {"x": x}}
    return {**component(subtype, name), "frame": frame}


async def locate(robot: RobotClient, frame: str, destination: str = "world") -> Pose:
    """Return the pose of a frame, once it is known."""
    await poll(
        robot.get_frame_system_config,
        lambda configs: any(each.frame.reference_frame == frame for each in configs),
        limit(20),
    )
    origin = PoseInFrame(reference_frame=frame, pose=UP)
    return (await robot.transform_pose(origin, destination)).pose


async def test_frames_of_a_remote_are_attached_to_its_frame(tmp_path: Path) -> None:
    for name in ("line", "cell", "hall"):
        (tmp_path / name).mkdir()
    there = {
        "components": [
            placed("arm", "picker", "world", 10),
            placed("camera", "eye", "picker", 1),
        ]
    }
    async with run_server(there, tmp_path / "line") as line:
        frame = {"parent": "table", "translation": {"x": 1000}}
        here = {
            "components": [
                placed("generic", "table", "world", 0.5),
                placed("sensor", "scale", "picker", 2),
            ],
            "remotes": [remote("line", line.port, frame=frame)],
        }
        async with run_server(here, tmp_path / "cell") as cell:
            await wait_for_state(cell, "rdk:component:arm/line:picker", "ready")
            above = [remote("cell", cell.port, frame={"parent": "world"}, prefix="left_")]
            async with (
                run_server({"remotes": above}, tmp_path / "hall") as hall,
                connect_sdk(line.port) as near,
                connect_sdk(cell.port) as robot,
                connect_sdk(hall.port) as far,
            ):
                before = await locate(near, "eye")
                pose = await locate(robot, "eye")
                assert abs(pose.x - (1000.5 + before.x)) < 1e-6
                assert abs((await locate(robot, "scale", "eye")).x - 1) < 1e-6
                assert abs((await locate(far, "left_eye")).x - pose.x) < 1e-6

                # The arm moves there, and everything that is attached to it here.
                await Arm.from_robot(near, "picker").move_to_joint_positions(
                    JointPositions(values=[90, 0, 0, 0, 0, 0])
                )
                after = await locate(near, "eye")
                assert abs(after.x - before.x) > 0.5
                assert abs((await locate(robot, "eye")).x - (1000.5 + after.x)) < 1e-6
                assert abs((await locate(far, "left_eye")).x - (1000.5 + after.x)) < 1e-6
