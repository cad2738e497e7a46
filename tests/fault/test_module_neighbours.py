"""Beside a broken module, other clients are served as beside any process of the same load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from grpclib.client import Channel
from tests.fault import neighbour as neighbor_program
from tests.support.machine import burner as burner_program
from tests.support.machine.bad_modules import (
    DEADLINE,
    Config,
    bad_module,
    config,
    ready,
    rogue_module,
    thing,
    wait_until,
)
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.sizes import FULL, size
from tests.support.waiting import pass_time
from tests.support.waiting import wait_until as wait_for

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402

# It watches how busy strangers are.
pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

SLOT = 0.1
SECONDS = 3.0 if FULL else 1.0
ROUNDS = size(ci=1, full=3)
MOST_ROUNDS = size(ci=2, full=5)
QUIET = 0.3
"""Processors that strangers may keep busy in a round that counts, unless none is calmer."""
SHARES = (0.5, 0.99)
MOST = (1.2, 2.0) if FULL else (3.0, 10.0)
"""How many times as long as in the control calls of others may take: half, and 99 of a hundred."""
LEEWAY = 0.5
"""Milliseconds that no ratio of them is worth talking about."""

GOOD = "acme:good:thing"
BAD = "acme:bad:thing"
FAKE = {"name": "builtin", "api": "rdk:component:generic", "model": "fake"}
NEIGHBORS = ("builtin", "g")


Took = dict[str, list[float]]


@dataclass
class Round:
    """What the neighbor measured beside the broken module, and in the control."""

    fault: Took
    control: Took
    cpu: float
    """Seconds of a processor that the module took, and the control after it."""
    strangers: float
    """Processors that were busy with what has nothing to do with us."""


def _percentile(rounds: list[Took], name: str, share: float) -> float:
    """Return milliseconds: the median over all rounds."""
    each = (sorted(took[name])[int(share * len(took[name]))] for took in rounds)
    return statistics.median(each) * 1000


class NeighborScenario:
    """The server, its neighbor and the burner."""

    def __init__(
        self,
        server: Server,
        channel: Channel,
        neighbor: asyncio.subprocess.Process,
        burner: asyncio.subprocess.Process,
        directory: Path,
    ) -> None:
        self.server = server
        self.channel = channel
        self._neighbor = neighbor
        self._burner = burner
        self._good = rogue_module(directory, "good")

    async def measure_with_module(
        self, module: Config, meanwhile: Callable[[], Awaitable[None]] | None
    ) -> tuple[Took, list[float]]:
        """Return the neighbor's times, and the processor time of the module in each slot."""
        await self._read_times()
        before = self._children_cpu()
        self._save_config([module], [thing("b", BAD)])
        busy = asyncio.ensure_future(meanwhile()) if meanwhile is not None else None
        try:
            amounts = await self._measure_cpu(before)
            took = await self._read_times()
        finally:
            if busy is not None:
                busy.cancel()
                await asyncio.gather(busy, return_exceptions=True)
        await self._remove_module()
        return took, amounts

    async def _measure_cpu(self, before: float) -> list[float]:
        amounts, began = [], time.monotonic()
        for number in range(round(SECONDS / SLOT)):
            await pass_time(began + (number + 1) * SLOT - time.monotonic())
            now = self._children_cpu()
            amounts.append(max(0.0, now - before))
            before = max(now, before)
        return amounts

    async def measure_with_burner(self, amounts: list[float]) -> Took:
        """Return the neighbor's times while the burner takes the same processor time."""
        assert self._burner.stdin is not None
        assert self._burner.stdout is not None
        await self._read_times()
        self._save_config([], [{**FAKE, "name": "b"}])
        self._burner.stdin.write(json.dumps(amounts).encode() + b"\n")
        await asyncio.wait_for(self._burner.stdout.readline(), 60)
        took = await self._read_times()
        await self._remove_module()
        return took

    async def settle(self) -> None:
        self._save_config([], [])
        await wait_until(self.channel, ready(*NEIGHBORS))

    async def _remove_module(self) -> None:
        """Remove everything of the last phase, so that it does not affect the next one."""
        self._save_config([], [])
        process = psutil.Process(self.server.pid)
        # The good module, the reaper and the front process stay.
        await wait_for(lambda: len(process.children(recursive=True)) <= 3, every=0.02)
        await wait_until(
            self.channel,
            lambda status: (
                len(status.modules) == 1
                and {each.name.name for each in status.resources} == set(NEIGHBORS)
            ),
        )

    def _save_config(self, modules: list[Config], components: list[Config]) -> None:
        wanted = config([self._good, *modules], [FAKE, thing("g", GOOD), *components])
        network = {"bind_address": f"localhost:{self.server.port}"}
        self.server.save({**wanted, "network": network})

    async def _read_times(self) -> Took:
        assert self._neighbor.stdin is not None
        assert self._neighbor.stdout is not None
        self._neighbor.stdin.write(b"\n")
        line = await asyncio.wait_for(self._neighbor.stdout.readline(), 20)
        said = json.loads(line)
        assert not said["failures"], said["failures"]
        took: Took = said["took"]
        return took

    def _children_cpu(self) -> float:
        """Return the processor seconds of its modules, including ended ones."""
        server = psutil.Process(self.server.pid)
        times = server.cpu_times()
        taken = times.children_user + times.children_system
        for child in server.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                taken += sum(child.cpu_times()[:4])
        return float(taken)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scenario(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NeighborScenario]:
    directory = tmp_path_factory.mktemp("server")
    wanted = with_free_port(config([rogue_module(directory, "good")], [FAKE, thing("g", GOOD)]))
    async with run_server(wanted, directory, exits=None) as server:
        channel = Channel("127.0.0.1", server.port)
        await wait_until(channel, ready(*NEIGHBORS))
        neighbor = await _start_program(neighbor_program.__file__, str(server.port), *NEIGHBORS)
        burner = await _start_program("-I", "-S", burner_program.__file__, str(SLOT))
        try:
            yield NeighborScenario(server, channel, neighbor, burner, directory)
        finally:
            channel.close()
            for program in (neighbor, burner):
                program.kill()
                await program.communicate()


async def _start_program(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )


ROWS = {
    "exit at start": "exit-at-start",
    "exit after ready": "exit-after-ready",
    "hang at start": "hang-at-start",
    "hang in Ready": "hang-in-ready blocking",
    "hang in AddResource": "hang-in-add blocking",
    "hang in RemoveResource": "hang-in-remove blocking",
    "hang in a call": "hang-in-call",
    "exit in AddResource": "exit-in-add",
    "SIGSTOP": "stop",
    "fork bomb": "fork",
    "flood of stderr": "flood",
    "ignores SIGTERM": "ignore-sigterm",
}
QUICK = ("exit after ready", "flood of stderr")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("row", ROWS if FULL else QUICK)
async def test_broken_module_affects_others_no_more_than_equal_load(
    scenario: NeighborScenario, tmp_path: Path, row: str
) -> None:
    mode, _, how = ROWS[row].partition(" ")
    module = bad_module(tmp_path, "bad", mode, HANG=how)

    async def call_it() -> None:
        bad = GenericClient("b", scenario.channel)
        await wait_until(scenario.channel, ready("b"))
        await asyncio.gather(
            *(bad.do_command({}, timeout=DEADLINE) for _ in range(20)), return_exceptions=True
        )

    meanwhile = call_it if row in ("hang in a call", "SIGSTOP") else None
    await scenario.settle()
    _, amounts = await scenario.measure_with_module(module, meanwhile)
    rounds: list[Round] = []
    while len(rounds) < MOST_ROUNDS and sum(each.strangers < QUIET for each in rounds) < ROUNDS:
        before, began = _cpu_of_others(), time.monotonic()
        # Each comes first equally often.
        control = await scenario.measure_with_burner(amounts) if len(rounds) % 2 else None
        fault, amounts = await scenario.measure_with_module(module, meanwhile)
        control = control or await scenario.measure_with_burner(amounts)
        strangers = (_cpu_of_others() - before) / (time.monotonic() - began)
        rounds.append(Round(fault, control, sum(amounts), strangers))
    calmest = sorted(rounds, key=lambda each: each.strangers)[:ROUNDS]
    for name in NEIGHBORS:
        _compare(row, name, calmest)


def _cpu_of_others() -> float:
    """Return the processor seconds of all processes except this one and its descendants."""
    everybody = psutil.cpu_times()
    me = psutil.Process()
    ours = sum(me.cpu_times()[:4])
    for child in me.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            ours += sum(child.cpu_times()[:4])
    return float(everybody.user + everybody.nice + everybody.system - ours)


def _compare(row: str, name: str, rounds: list[Round]) -> None:
    faults, controls = [each.fault for each in rounds], [each.control for each in rounds]
    ours, theirs = (
        [_percentile(each, name, share) for share in SHARES] for each in (faults, controls)
    )
    print(
        f"{row:22} {name:8} {sum(len(each[name]) for each in faults):5} calls, "
        f"cpu {sum(each.cpu for each in rounds):5.2f} s, "
        f"strangers {max(each.strangers for each in rounds):4.2f}  "
        f"p50 {ours[0]:5.2f} / {theirs[0]:5.2f} ms = {ours[0] / theirs[0]:4.2f}  "
        f"p99 {ours[1]:6.2f} / {theirs[1]:6.2f} ms = {ours[1] / theirs[1]:4.2f}"
    )
    for mine, other, most in zip(ours, theirs, MOST, strict=True):
        assert mine <= most * other + LEEWAY
