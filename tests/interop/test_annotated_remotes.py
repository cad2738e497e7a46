"""Cameras of remotes that draw the results of a vision service: others must not analyze them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.test_remotes import DETECTOR, remote, wait_for_state
from tests.interop.test_sdk_client import component
from tests.interop.test_webrtc_remotes import webrtc_remote
from tests.support.machine.running import run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.waiting import poll
from viam.components.camera import Camera
from viam.robot.client import RobotClient
from viam.services.vision import VisionClient


def transform(name: str, source: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:camera",
        "model": "transform",
        "attributes": {"source": source, "pipeline": list(steps)},
    }


BOXES = {"type": "detections", "attributes": {"detector_name": "red"}}
TURN = {"type": "rotate", "attributes": {"angle_degs": 90}}
TOP = component("camera", "top")
LINE = {"components": [TOP, transform("drawn", "top", BOXES)], "services": [DETECTOR]}
PLAIN_LINE = {"components": [TOP, transform("drawn", "top", TURN)], "services": [DETECTOR]}
CELL = {"components": [transform("turned", "line:drawn", TURN)], "services": [DETECTOR]}
HALL = {"components": [transform("again", "cell:turned", TURN)], "services": [DETECTOR]}


async def read_refusal(robot: RobotClient, camera: str) -> str | None:
    """Let this machine's own detector analyze a camera, and return why it does not."""
    try:
        await VisionClient.from_robot(robot, "red").get_detections_from_camera(camera)
    except GRPCError as error:
        if error.status is not Status.FAILED_PRECONDITION:
            raise
        return error.message
    return None


@pytest.mark.parametrize("dial", [remote, webrtc_remote], ids=["gRPC", "WebRTC"])
async def test_vision_does_not_analyze_annotated_images_of_remotes(
    tmp_path: Path, dial: Callable[[str, int], dict[str, Any]]
) -> None:
    for name in ("line", "cell", "hall"):
        (tmp_path / name).mkdir()
    async with run_server(LINE, tmp_path / "line") as line:
        cell_config = {**CELL, "remotes": [dial("line", line.port)]}
        async with run_server(cell_config, tmp_path / "cell") as cell:
            hall_config = {**HALL, "remotes": [dial("cell", cell.port)]}
            async with run_server(hall_config, tmp_path / "hall") as hall:
                await wait_for_state(cell, "rdk:component:camera/turned", "ready")
                await wait_for_state(hall, "rdk:component:camera/again", "ready")
                annotated = {
                    line.port: ["drawn"],
                    cell.port: ["line:drawn", "turned"],
                    hall.port: ["cell:line:drawn", "cell:turned", "again"],
                }
                for port, cameras in annotated.items():
                    async with connect_sdk(port) as robot:
                        for camera in cameras:
                            refusal = await read_refusal(robot, camera)
                            assert refusal is not None, camera
                            assert f'camera "{camera}" shows the results of' in refusal
                            assert 'vision service "red"' in refusal
                            # Who only looks at the images notices nothing.
                            (image,), _ = await Camera.from_robot(robot, camera).get_images()
                            assert image.data
                async with connect_sdk(hall.port) as robot:
                    assert await read_refusal(robot, "cell:line:top") is None
                    line.save({**PLAIN_LINE, "network": {"bind_address": f"localhost:{line.port}"}})
                    for camera in annotated[hall.port]:
                        await poll(
                            lambda name=camera: read_refusal(robot, name),  # type: ignore[misc]
                            lambda refusal: refusal is None,
                        )
