"""Real releases and the real times of the agent: how long the machine is away in each update."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from grpclib.client import Channel
from tests.support.agent.real_machine import RealMachine
from tests.support.agent.real_releases import broken_release, current_release, earlier_release
from tests.support.machine.modular import poll
from tests.support.machine.running import http_get
from tests.support.sizes import limit
from tests.support.waiting import pass_time

from cogwork.core.versions.product import Product
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.sensor.client import SensorClient  # noqa: E402

# Releases are built, and a health window is a minute.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

INTERVAL = 0.02
"""Seconds between two calls."""
INSTALLING = 300.0
"""Seconds for the agent to look for updates and to install one."""
WINDOW = 60.0
MAX_ROLLBACK = 90.0
SERVE, AGENT_RUN = "src/cogwork/server/serve.py", "src/cogwork/agent/agent.py"
"""Files that are not imported before the program really runs, so `-version` works."""
NOTE_END = """

def _end() -> None:
    import pathlib, time
    pathlib.Path(os.environ["COGWORK_HOME"], "ended").write_text(str(time.time()))
    os._exit(7)

"""
HANG = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(3600)
"""
CRASHES = {
    "at start": "_end()\n",
    "after 30 s": "import threading\nthreading.Timer(30, _end).start()\n",
}
CONFIG = {"components": [{"name": "scale", "api": "rdk:component:sensor", "model": "fake"}]}


@dataclass
class Calls:
    """When calls of one kind were answered, by the computer's clock."""

    answers: list[tuple[float, str]] = field(default_factory=list)
    """The time of each, and the version that answered, if it says so."""
    is_over: bool = False

    async def wait_for_answer(self) -> None:
        since = time.time()

        async def last() -> float:
            return self.answers[-1][0]

        await poll(last, lambda found: found > since)

    def longest_gap(self) -> float:
        times = [when for when, _ in self.answers]
        return max(after - before for before, after in itertools.pairwise(times))

    def first(self, version: str, since: float) -> float:
        """Return when this version answered for the first time from then on."""
        return next(at for at, which in self.answers if at > since and which == version)


@contextlib.asynccontextmanager
async def call_constantly(port: int) -> AsyncIterator[tuple[Calls, Calls]]:
    """Call the machine every 20 ms, by HTTP and with the SDK's client of a sensor."""
    http, grpc = Calls(), Calls()
    channel = Channel("localhost", port)
    sensor = SensorClient("scale", channel)

    async def ask() -> str:
        status, body = await http_get("localhost", port, "/restart_status")
        assert status == 200
        return str(json.loads(body)["version"])

    async def read() -> str:
        await sensor.get_readings(timeout=5)
        return ""

    tasks = [asyncio.ensure_future(_repeat(ask, http)), asyncio.ensure_future(_repeat(read, grpc))]
    try:
        yield http, grpc
    finally:
        # Not cancelled: grpclib may take that for the end of its own deadline.
        http.is_over = grpc.is_over = True
        await asyncio.gather(*tasks)
        channel.close()


async def _repeat(call: Callable[[], Awaitable[str]], calls: Calls) -> None:
    while not calls.is_over:
        began = time.monotonic()
        with contextlib.suppress(Exception):  # a call that fails is not answered
            version = await asyncio.wait_for(call(), 5)
            calls.answers.append((time.time(), version))
        await pass_time(INTERVAL - (time.monotonic() - began))


@pytest.fixture
async def machine(tmp_path: Path) -> RealMachine:
    earlier = earlier_release()
    machine = RealMachine(tmp_path / "machine", earlier, earlier)
    machine.save(CONFIG)
    machine.offer_releases(agent=earlier, server=earlier)
    return machine


async def test_good_version_replaces_the_server(machine: RealMachine) -> None:
    former, new = earlier_release(), current_release()
    machine.offer_releases(agent=former, server=new)
    async with machine.run():
        await machine.wait_for_version(former.version)
        async with call_constantly(machine.port) as (http, grpc):
            await machine.wait_for_version(new.version, INSTALLING)
            began = time.time()
            await machine.wait_for_phase("current", new.version, 2 * WINDOW)
            await grpc.wait_for_answer()
        assert machine.state(Product.SERVER).last_good == new.version
        assert machine.state(Product.SERVER).previous == former.version
        print(
            f"=> good switch {former.version} -> {new.version}: away for "
            f"{http.longest_gap():.2f} s (HTTP), {grpc.longest_gap():.2f} s (sensor with the SDK); "
            f"accepted {time.time() - began:.0f} s after its first answer"
        )
        assert http.longest_gap() < limit(10)


@pytest.mark.parametrize("when", CRASHES)
async def test_version_that_crashes_is_rolled_back(machine: RealMachine, when: str) -> None:
    former = earlier_release()
    bad = broken_release("0.99.1", SERVE, NOTE_END + CRASHES[when])
    machine.offer_releases(agent=former, server=bad)
    async with machine.run():
        await machine.wait_for_version(former.version)
        async with call_constantly(machine.port) as (http, grpc):
            failed = await machine.wait_for_phase("failed", bad.version, INSTALLING)
            await machine.wait_for_version(former.version)
            await grpc.wait_for_answer()
        ended = float((machine.home / "ended").read_text())
        took = http.first(former.version, ended) - ended
        print(
            f"=> version that crashes {when}: {former.version} serves {took:.2f} s after the "
            f"crash; longest time away {http.longest_gap():.2f} s (HTTP), "
            f"{grpc.longest_gap():.2f} s (sensor with the SDK); {failed['detail']}"
        )
        assert "exit code 7" in failed["detail"]
        assert took < MAX_ROLLBACK
        assert machine.state(Product.SERVER).failed.keys() == {bad.version}


async def test_version_that_hangs_is_rolled_back(machine: RealMachine) -> None:
    former = earlier_release()
    bad = broken_release("0.99.2", SERVE, HANG)
    machine.offer_releases(agent=former, server=bad)
    async with machine.run():
        await machine.wait_for_version(former.version)
        async with call_constantly(machine.port) as (http, _):
            await machine.wait_for_phase("switching", bad.version, INSTALLING)
            failed = await machine.wait_for_phase("failed", bad.version, INSTALLING)
            await machine.wait_for_version(former.version)
        # It is recorded at the end of the window, before anything else.
        ended = machine.state(Product.SERVER).failed[bad.version].time
        took = http.first(former.version, ended) - ended
        print(
            f"=> version that hangs and ignores SIGTERM: {former.version} serves {took:.2f} s "
            f"after the end of its window; away for {http.longest_gap():.2f} s; {failed['detail']}"
        )
        assert took < MAX_ROLLBACK


async def test_good_agent_replaces_itself(machine: RealMachine) -> None:
    former, new = earlier_release(), current_release()
    machine.offer_releases(agent=new, server=former)
    async with machine.run() as launcher:
        await machine.wait_for_version(former.version)
        server = machine.server_process
        async with call_constantly(machine.port) as (http, _):
            await launcher.err.wait_for(f"cogwork-agent {new.version} keeps", within=INSTALLING)
            began = time.time()
            await launcher.err.wait_for(f"version {new.version} of the agent works", within=120)
            took = time.time() - began
            await machine.wait_for_phase("current", new.version, 2 * WINDOW, Product.AGENT)
        assert machine.server_process == server
        state = machine.state(Product.AGENT)
        assert (state.last_good, state.previous, state.trial) == (new.version, former.version, None)
        print(
            f"=> agent {former.version} -> {new.version}: accepted after {took:.0f} s; the server "
            f"is the same process, longest gap {http.longest_gap():.2f} s"
        )
        assert http.longest_gap() < limit(1)


async def test_agent_that_crashes_at_boot_is_replaced_by_the_former_one(
    machine: RealMachine,
) -> None:
    former, new = earlier_release(), current_release()
    bad = broken_release("0.99.3", AGENT_RUN, "\nraise RuntimeError('no such device')\n")
    machine.offer_releases(agent=bad, server=former)
    async with machine.run() as launcher:
        await machine.wait_for_version(former.version)
        server = machine.server_process
        async with call_constantly(machine.port) as (http, _):
            await launcher.err.wait_for("RuntimeError: no such device", within=INSTALLING)
            began, line = time.time(), len(launcher.err.lines)
            await launcher.err.wait_for(f"cogwork-agent {former.version} keeps", line)
            took = time.time() - began
            failed = await machine.wait_for_phase("failed", bad.version, 60, Product.AGENT)
        crashes = sum("RuntimeError: no such device" in each for each in launcher.err.lines)
        assert crashes == 3
        assert machine.server_process == server
        assert machine.state(Product.AGENT).failed.keys() == {bad.version}
        print(
            f"=> agent that crashes at boot: {crashes} boots, {former.version} back {took:.1f} s "
            f"after the first crash; the server is the same process, longest gap "
            f"{http.longest_gap():.2f} s; {failed['detail']}"
        )
        assert http.longest_gap() < limit(1)
        # The old agent is fully at work: it updates the server.
        machine.offer_releases(agent=bad, server=new)
        await machine.wait_for_version(new.version, INSTALLING)
