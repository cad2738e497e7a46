"""Remotes that freeze, restart again and again, or change all the time: nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import pytest_asyncio
from grpclib import GRPCError
from tests.fault import changing_server
from tests.fault.local_calls import LOCAL, compare, run_twin
from tests.interop.test_remotes import LINE, remote, wait_for_state
from tests.interop.test_sdk_client import component
from tests.support.machine.running import Server, run_server, start_server, with_free_port
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.media.rtsp_server import free_port
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time
from viam.components.motor import Motor
from viam.components.sensor import Sensor

from cogwork.remotes.errors import CALL_TIMEOUT

pytestmark = pytest.mark.asyncio(loop_scope="module")

FROZEN = size(ci=1, full=20)
"""Seconds after the connection is lost."""
RESTARTS = size(ci=3, full=200)
CHANGES = size(ci=15, full=600)
WATCHED = size(ci=30, full=50)
"""How often the names of resources are asked for, every 0.1 s: they change once a second."""
APPEARANCES = size(ci=4, full=50)
SCALE = "rdk:component:sensor/line:scale"


class Machines(NamedTuple):
    line: Server
    cell: Server
    """Has the line as a remote."""
    twin: Server
    """Has no remote."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Machines]:
    directory = tmp_path_factory.mktemp("machines")
    (directory / "line").mkdir()
    (directory / "cell").mkdir()
    async with run_server(LINE, directory / "line") as line:
        config = {"remotes": [remote("line", line.port)], "components": [LOCAL]}
        async with (
            run_server(config, directory / "cell") as cell,
            run_twin(directory) as twin,
        ):
            await wait_for_state(cell, SCALE, "ready")
            yield Machines(line, cell, twin)


async def test_frozen_remote(machines: Machines) -> None:
    line, cell, twin = machines

    async def freeze() -> None:
        family = [psutil.Process(line.pid)]
        family += family[0].children(recursive=True)
        for each in family:
            each.suspend()
        try:
            with pytest.raises((GRPCError, TimeoutError)):
                await scale.get_readings(timeout=0.5)
            lost = await wait_for_state(cell, SCALE, "unhealthy")
            print(lost["reason"])
            await pass_time(FROZEN)
        finally:
            for each in family:
                each.resume()
        resumed = time.monotonic()
        await wait_for_state(cell, SCALE, "ready")
        print(f"back {time.monotonic() - resumed:.2f} s after it was resumed")
        assert time.monotonic() - resumed < limit(2)

    async with connect_sdk(cell.port) as robot:
        scale = Sensor.from_robot(robot, "line:scale")
        await compare(cell, twin, freeze, "frozen")


async def test_pause_of_this_machine_keeps_the_connection(machines: Machines) -> None:
    """Its session expires there meanwhile, and is replaced."""
    cell = machines.cell
    since = len(cell.out.lines)
    cell.signal(signal.SIGSTOP)
    await pass_time(CALL_TIMEOUT + 1)
    cell.signal(signal.SIGCONT)
    resumed = time.monotonic()
    async with asyncio.timeout(limit(10)), connect_sdk(cell.port) as robot:
        belt = Motor.from_robot(robot, "line:belt")
        is_moving = False
        while not is_moving:
            # Refused as long as the session is the expired one.
            with contextlib.suppress(GRPCError):
                await belt.set_power(0.5)
                is_moving = await belt.is_moving()
    took = time.monotonic() - resumed
    print(f"the motor moves {took:.2f} s after the machine was resumed")
    assert took < limit(2)
    assert not [line for line in cell.out.lines[since:] if "cannot be used" in line]


async def test_resource_that_appears_on_a_remote(machines: Machines) -> None:
    line, cell, _ = machines
    delays: list[float] = []
    for number in range(APPEARANCES):
        # At different times of the interval in which the remote is asked.
        await pass_time(0.1 * (number % 7))
        extra = component("sensor", f"extra-{number}", readings={"number": number})
        line.save(with_free_port({"components": [*LINE["components"], extra]}))
        await wait_for_state(line, f"rdk:component:sensor/extra-{number}", "ready")
        began = time.monotonic()
        await wait_for_state(cell, f"rdk:component:sensor/line:extra-{number}", "ready")
        delays.append(time.monotonic() - began)
    print(f"resources appear after {max(delays):.2f} s at most")
    assert max(delays) < limit(1)
    async with connect_sdk(cell.port) as robot:
        last = Sensor.from_robot(robot, f"line:extra-{APPEARANCES - 1}")
        assert await last.get_readings() == {"number": APPEARANCES - 1}


async def test_remote_that_restarts_again_and_again(machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    port = free_port()
    line_config = {**LINE, "network": {"bind_address": f"localhost:{port}"}}
    config = {"remotes": [remote("line", port)], "components": [LOCAL]}
    async with run_server(config, tmp_path / "cell") as cell:
        delays: list[float] = []
        memory: list[int] = []

        async def restart() -> None:
            for _ in range(RESTARTS):
                async with run_server(line_config, tmp_path / "line", exits=None) as line:
                    began = time.monotonic()
                    await wait_for_state(cell, SCALE, "ready")
                    delays.append(time.monotonic() - began)
                    line.signal(signal.SIGKILL)
                await wait_for_state(cell, SCALE, "unhealthy")
                memory.append(psutil.Process(cell.pid).memory_info().rss)
            print(f"back after {statistics.median(delays):.2f} to {max(delays):.2f} s")

        await compare(cell, machines.twin, restart, f"{RESTARTS} restarts")
        growth = (memory[-1] - memory[len(memory) // 4]) / 1e6
        print(f"memory {growth:+.1f} MB")
        assert max(delays) < limit(2)
        assert growth < 5


async def test_remote_whose_resources_change_all_the_time(
    machines: Machines, tmp_path: Path
) -> None:
    (tmp_path / "cell").mkdir()
    port = free_port()
    program = (sys.executable, changing_server.__file__)
    async with start_server([str(port)], program=program):
        config = {"remotes": [remote("line", port)], "components": [LOCAL]}
        async with run_server(config, tmp_path / "cell") as cell:
            await wait_for_state(cell, SCALE, "ready")
            memory: list[int] = []

            async def wait() -> None:
                for _ in range(CHANGES):
                    await pass_time(0.1)
                    memory.append(psutil.Process(cell.pid).memory_info().rss)

            await compare(cell, machines.twin, wait, f"{CHANGES} changes")
            growth = (memory[-1] - memory[len(memory) // 4]) / 1e6
            rate = await measure_changes(cell)
            print(f"{rate:.1f} changes per second arrive; memory {growth:+.1f} MB")
            assert 0.2 < rate < 3
            assert growth < 5
            async with connect_sdk(cell.port) as robot:
                scale = Sensor.from_robot(robot, "line:scale")
                assert await scale.get_readings() == {"weight": 3}


async def measure_changes(cell: Server) -> float:
    """Return how often per second the names of resources change."""
    began = time.monotonic()
    seen = [await list_names(cell)]
    for _ in range(WATCHED):
        await pass_time(0.1)
        seen.append(await list_names(cell))
    changes = sum(one != other for one, other in pairwise(seen))
    return changes / (time.monotonic() - began)


async def list_names(server: Server) -> set[str]:
    return {each["name"] for each in (await server.status())["resources"]}
