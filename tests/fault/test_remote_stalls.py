"""A remote whose connections get stuck while others would work, as TCP does after an outage."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.fault.gate import run_gate
from tests.fault.test_remote_networks import wait_for_reading
from tests.interop.test_remotes import LINE, remote, wait_for_state
from tests.support.machine.running import run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time
from viam.components.sensor import Sensor

SCALE = "rdk:component:sensor/line:scale"
STALL = size(ci=10, full=12)
"""Seconds. A remote that does not answer would be lost before."""


async def test_other_connections_are_used(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    async with (
        run_server(LINE, tmp_path / "line") as line,
        run_gate(line.port) as gate,
        run_server({"remotes": [remote("line", gate.port)]}, tmp_path / "cell") as cell,
    ):
        await wait_for_state(cell, SCALE, "ready")
        async with connect_sdk(cell.port) as robot:
            scale = Sensor.from_robot(robot, "line:scale")
            with gate.stall():
                stalled = time.monotonic()
                stuck = asyncio.ensure_future(scale.get_readings(timeout=60))
                await wait_for_reading(scale)
                assert time.monotonic() - stalled < limit(4)
                await pass_time(stalled + STALL - time.monotonic())
                assert await scale.get_readings(timeout=limit(1)) == {"weight": 3}
                assert not stuck.done()
            assert await stuck == {"weight": 3}
        assert "cannot be used" not in cell.output
