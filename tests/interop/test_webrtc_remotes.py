"""Machines whose remotes are behind a cloud: real servers, and the SDK's unmodified client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.control_page import connect_sdk
from tests.interop.test_remotes import LINE, wait_for_state
from tests.running import run_server
from viam.components.motor import Motor
from viam.components.sensor import Sensor


def webrtc_remote(name: str, signaling: str, **more: Any) -> dict[str, Any]:
    """A machine is its own signaling server, and answers to any name."""
    return {
        "name": name,
        "address": f"{name}.fleet.test",
        "managed_by": signaling,
        "insecure": True,
        **more,
    }


async def test_client_uses_the_resources_of_a_remote(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    async with run_server(LINE, tmp_path / "line") as line:
        config = {"remotes": [webrtc_remote("line", f"localhost:{line.port}")]}
        async with run_server(config, tmp_path / "cell") as cell:
            await wait_for_state(cell, "rdk:component:motor/line:belt", "ready")
            async with connect_sdk(cell.port) as robot:
                scale = Sensor.from_robot(robot, "line:scale")
                assert await scale.get_readings() == {"weight": 3}
                belt = Motor.from_robot(robot, "belt")
                await belt.set_power(0.5)
                async with connect_sdk(line.port) as there:
                    assert await Motor.from_robot(there, "belt").is_powered() == (True, 0.5)
                    await robot.stop_all()
                    assert await Motor.from_robot(there, "belt").is_powered() == (False, 0.0)
