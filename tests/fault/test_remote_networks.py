"""A remote behind a network that fails, or is slow: it is back soon, and nobody else notices."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio
from grpclib import GRPCError
from tests.fault.local_calls import LOCAL, compare, run_twin
from tests.interop.test_remotes import wait_for_state, wait_until_it_stands
from tests.interop.test_sdk_client import component
from tests.support.machine.programs import start_mover
from tests.support.machine.running import PROGRAM, Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.network.namespaces import Computer, needs_namespaces, on_computer
from tests.support.network.slow_network import Rule, SlowNetwork, slow_network
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, poll
from viam.components.camera import Camera
from viam.components.sensor import Sensor

pytestmark = [needs_namespaces, pytest.mark.asyncio(loop_scope="module")]

CUT = Rule(is_cut=True)
OUTAGES = size(ci=1, full=3)
SLOW = Rule(delay=0.2, loss=0.05)
"""Each way, so a round trip takes 400 ms."""
SLOW_TIME = size(ci=8, full=60)
"""Seconds in the slow network."""
WINDOW = 2.0
"""Seconds of a session without heartbeats, by default."""
SCALE = "rdk:component:sensor/line:scale"


class TwoMachines(NamedTuple):
    cell: Server
    """Runs on the computer of the test."""
    line: Server
    """The remote of the cell, on another computer."""
    twin: Server
    """Runs beside the cell, and has no remote."""
    there: Computer
    network: SlowNetwork


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two_machines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TwoMachines]:
    directory = tmp_path_factory.mktemp("machines")
    (directory / "line").mkdir()
    (directory / "cell").mkdir()
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
            run_server(line_config, directory / "line", program=on_line, arguments=quietly) as line,
            run_server(cell_config, directory / "cell", arguments=quietly) as cell,
            run_twin(directory) as twin,
        ):
            yield TwoMachines(cell, line, twin, there, network)


@pytest_asyncio.fixture(loop_scope="module")
async def machines(two_machines: TwoMachines) -> TwoMachines:
    """Machines that are connected by a fast network."""
    two_machines.network.apply(Rule())
    await wait_for_state(two_machines.cell, SCALE, "ready")
    return two_machines


# The remote outlives the short outage, and is lost in the long one.
@pytest.mark.parametrize("seconds", [3.5, 10])
async def test_cut_network(machines: TwoMachines, seconds: float) -> None:
    cell, _, twin, _, network = machines
    async with connect_sdk(cell.port) as robot:
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
                await pass_time(began + seconds - time.monotonic())
                network.apply(Rule())
                returned = time.monotonic()
                await wait_for_reading(scale)
                took = time.monotonic() - returned
                print(f"back {took:.2f} s after the network, which was cut for {seconds:g} s")
                assert took < limit(2)

        await compare(cell, twin, cut, f"cut for {seconds:g} s")


async def call_in_vain(scale: Sensor) -> None:
    """A call ends at its deadline, or before."""
    began = time.monotonic()
    with pytest.raises((GRPCError, TimeoutError)):
        await scale.get_readings(timeout=0.5)
    assert time.monotonic() - began < limit(0.6)


async def wait_for_reading(scale: Sensor) -> None:
    """Wait until a call to the remote succeeds."""

    async def is_answered() -> bool:
        with contextlib.suppress(GRPCError, TimeoutError):
            await scale.get_readings(timeout=1)
            return True
        return False

    await poll(is_answered, within=limit(30), every=0.05)


async def test_slow_network(machines: TwoMachines) -> None:
    cell, _, twin, _, network = machines

    async def slow() -> None:
        since = len(cell.out.lines)
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
        lost = [line for line in cell.out.lines[since:] if "remote line cannot be used" in line]
        assert len(lost) == 1, cell.output
        network.apply(Rule())

    await compare(cell, twin, slow, "200 ms, 5 % loss")


async def test_motion_ends_when_the_network_is_cut(machines: TwoMachines) -> None:
    cell, line, _, there, network = machines
    async with start_mover(cell.port, "motor"):
        with on_computer(there):
            network.apply(CUT)
            took = await wait_until_it_stands(line)
        print(f"the motor stands {took:.2f} s after the cut, window {WINDOW:g} s")
        assert took < WINDOW + limit(0.5)
        network.apply(Rule())
        await wait_for_state(cell, SCALE, "ready")
