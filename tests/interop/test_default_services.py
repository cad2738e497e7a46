"""The motion service that every machine has, as clients of the public SDK use it."""

from __future__ import annotations

from pathlib import Path

from tests.interop.test_remotes import remote, wait_for_state
from tests.support.machine.commands import run_command
from tests.support.machine.running import run_server
from tests.support.machine.sdk_robot import connect_sdk
from viam.proto.robot import ResourceStatus
from viam.services.motion import MotionClient

BELT = {"name": "belt", "api": "rdk:component:motor", "model": "fake"}


async def test_client_uses_motion_that_nothing_configures(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    async with run_server({"components": [BELT]}, tmp_path / "line") as line:
        await wait_for_state(line, "rdk:component:motor/belt", "ready")
        async with connect_sdk(line.port) as robot:
            motion = MotionClient.from_robot(robot, "builtin")
            assert list(await motion.list_plan_statuses()) == []
            status = await robot.get_machine_status()
            assert [(each.name.name, each.state) for each in status.resources] == [
                ("belt", ResourceStatus.STATE_READY),
                ("builtin", ResourceStatus.STATE_READY),
            ]
        shown = await run_command("status", "--address", f"localhost:{line.port}")
        assert "1 of 1 resources ready" in shown.out
        assert "motion" not in shown.out
        cell_config = {"remotes": [remote("line", line.port)]}
        async with run_server(cell_config, tmp_path / "cell") as cell:
            await wait_for_state(cell, "rdk:component:motor/line:belt", "ready")
            async with connect_sdk(cell.port) as robot:
                listed = {f"{each.subtype}/{each.name}" for each in robot.resource_names}
            assert {each for each in listed if "motion" in each} == {"motion/builtin"}
