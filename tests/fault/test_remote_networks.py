"""A remote behind a network that fails, or is slow: it is back soon, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from grpclib import GRPCError
from tests.fault.local_calls import LOCAL, compare
from tests.interop.test_remotes import wait_for_state, wait_until_it_stands
from tests.interop.test_sdk_client import component
from tests.support.control_page import connect_sdk
from tests.support.machine.programs import start_mover
from tests.support.machine.running import PROGRAM, Server, run_server
from tests.support.network.namespaces import Computer, needs_namespaces, on_computer
from tests.support.network.slow_network import Rule, SlowNetwork, slow_network
from tests.support.sizes import limit, size
from viam.components.camera import Camera
from viam.components.sensor import Sensor

pytestmark = [pytest.mark.alone, needs_namespaces]

CUT = Rule(is_cut=True)
OUTAGES = size(ci=1, full=3)
SLOW = Rule(delay=0.2, loss=0.05)
"""Each way, so a round trip takes 400 ms."""
SLOW_TIME = size(ci=20, full=60)
"""Seconds in the slow network."""
WINDOW = 2.0
"""Seconds of a session without heartbeats, by default."""
SCALE = "rdk:component:sensor/line:scale"


class TwoMachines(NamedTuple):
    cell: Server
    """Runs on the computer of the test."""
    line: Server
    """The remote of the cell, on another computer."""
    there: Computer
    network: SlowNetwork


@contextlib.asynccontextmanager
async def two_machines(tmp_path: Path) -> AsyncIterator[TwoMachines]:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    with slow_network() as (there, here, network), on_computer(here):
        line_config = {
            "components": [
                component("sensor", "scale", readings={"weight": 3}),
                component("camera", "top", scene="conveyor", width=640, height=480),
                component("motor", "motor"),
            ],
            "network": {"bind_address": ":8080", "insecure_without_auth": True},
        }
        remote = {"name": "line", "address": f"{there.address}:8080", "insecure": True}
        cell_config = {"remotes": [remote], "components": [LOCAL]}
        on_line, quietly = [*there.prefix, *PROGRAM], ["-disable-mdns"]
        async with (
            run_server(line_config, tmp_path / "line", program=on_line, arguments=quietly) as line,
            run_server(cell_config, tmp_path / "cell", arguments=quietly) as cell,
        ):
            await wait_for_state(cell, SCALE, "ready")
            yield TwoMachines(cell, line, there, network)


# The remote outlives the short outage, and is lost in the long one.
@pytest.mark.parametrize("seconds", [3.5, 10])
async def test_cut_network(tmp_path: Path, seconds: float) -> None:
    async with (
        two_machines(tmp_path) as (cell, _, _, network),
        connect_sdk(cell.port) as robot,
    ):
        scale = Sensor.from_robot(robot, "line:scale")

        async def cut() -> None:
            for _ in range(OUTAGES):
                network.apply(CUT)
                began = time.monotonic()
                await call_in_vain(scale)
                if seconds > 5:
                    lost = await wait_for_state(cell, SCALE, "unhealthy")
                    print(f"{time.monotonic() - began:.2f} s after the cut: {lost['reason']}")
                    assert "did not answer" in lost["reason"]
                    await call_in_vain(scale)
                await asyncio.sleep(began + seconds - time.monotonic())
                network.apply(Rule())
                returned = time.monotonic()
                await wait_for_reading(scale)
                took = time.monotonic() - returned
                print(f"back {took:.2f} s after the network, which was cut for {seconds:g} s")
                assert took < limit(2)

        await compare(cell, cut, f"cut for {seconds:g} s")


async def call_in_vain(scale: Sensor) -> None:
    """A call ends at its deadline, or before."""
    began = time.monotonic()
    with pytest.raises((GRPCError, TimeoutError)):
        await scale.get_readings(timeout=0.5)
    assert time.monotonic() - began < limit(0.6)


async def wait_for_reading(scale: Sensor) -> None:
    """Wait until a call to the remote succeeds."""
    async with asyncio.timeout(limit(30)):
        while True:
            with contextlib.suppress(GRPCError, TimeoutError):
                await scale.get_readings(timeout=1)
                return
            await asyncio.sleep(0.05)


async def test_slow_network(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as (cell, _, _, network):

        async def slow() -> None:
            network.apply(CUT)
            await wait_for_state(cell, SCALE, "unhealthy")
            network.apply(SLOW)
            began = time.monotonic()
            await wait_for_state(cell, SCALE, "ready")
            print(f"connected in {time.monotonic() - began:.2f} s")
            async with connect_sdk(cell.port) as robot:
                scale = Sensor.from_robot(robot, "line:scale")
                camera = Camera.from_robot(robot, "line:top")
                calls: list[float] = []
                images: list[float] = []
                end = time.monotonic() + SLOW_TIME
                while time.monotonic() < end:
                    asked = time.monotonic()
                    assert await scale.get_readings(timeout=10) == {"weight": 3}
                    answered = time.monotonic()
                    calls.append(answered - asked)
                    found, _ = await camera.get_images(timeout=60)
                    assert len(found[0].data) > 1000
                    images.append(time.monotonic() - answered)
            print(
                f"{len(calls)} calls in {statistics.median(calls):.2f} to {max(calls):.2f} s, "
                f"{len(images)} images of {len(found[0].data)} bytes in "
                f"{statistics.median(images):.2f} to {max(images):.2f} s"
            )
            network.apply(Rule())

        await compare(cell, slow, "200 ms, 5 % loss")
        assert cell.output.count("remote line cannot be used") == 1, cell.output


async def test_motion_ends_when_the_network_is_cut(tmp_path: Path) -> None:
    async with (
        two_machines(tmp_path) as (cell, line, there, network),
        start_mover(cell.port, "motor"),
    ):
        with on_computer(there):
            network.apply(CUT)
            took = await wait_until_it_stands(line)
        print(f"the motor stands {took:.2f} s after the cut, window {WINDOW:g} s")
        assert took < WINDOW + limit(0.5)
        network.apply(Rule())
        await wait_for_state(cell, SCALE, "ready")
