from __future__ import annotations

import asyncio
import os

import pytest
from tests.support.waiting import run_others
from tests.unit.robot.bench import Bench, thing

from cogwork.robot.hosts import (
    ModuleState,
    ModuleStatus,
    NoModules,
    NoProcesses,
    ProcessState,
    ProcessStatus,
)
from cogwork.robot.status import server_load
from cogwork.robot.status.server_load import SAMPLE_INTERVAL
from cogwork.robot.status.status_view import build_status_view


async def test_building_a_large_view_does_not_block_the_loop(bench: Bench) -> None:
    await bench.apply(*(thing(f"t{number}") for number in range(450)))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await run_others()

    counting = asyncio.ensure_future(count())
    view = await build_status_view(bench.machine, bench.report)
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert len(view["resources"]) == 450
    assert turns >= 4


async def test_resource_removed_while_building_the_view(bench: Bench) -> None:
    await bench.apply(*(thing(f"t{number}") for number in range(150)))
    building = asyncio.ensure_future(build_status_view(bench.machine, bench.report))
    await run_others()
    await bench.apply(thing("t0"))
    assert {each["name"] for each in (await building)["resources"]} >= {"rdk:component:generic/t0"}


async def test_server_says_what_it_uses(bench: Bench) -> None:
    await bench.call_robot("GetVersion")
    server = (await build_status_view(bench.machine, bench.report))["server"]
    assert server["memory_bytes"] > 1 << 20
    assert server["cpu_seconds"] > 0
    assert server["calls_started"] == 1
    assert (server["calls_running"], server["sessions"]) == (0, 0)
    assert server["loop_lag_seconds"] is None
    assert server["computer"]["memory_bytes"] > server["computer"]["memory_available_bytes"]
    assert server["computer"]["cores"] >= 1


async def test_load_is_sampled_at_most_every_two_seconds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = 0

    def read_process(pid: int, without: object = ()) -> None:
        nonlocal samples
        samples += 1

    monkeypatch.setattr(server_load, "read_process_tree", read_process)
    for _ in range(10):
        await build_status_view(bench.machine, bench.report)
    assert samples == 1
    await bench.clock.advance(SAMPLE_INTERVAL)
    view = await build_status_view(bench.machine, bench.report)
    assert samples == 2
    assert view["server"]["uptime_seconds"] == SAMPLE_INTERVAL


async def test_module_has_the_memory_of_its_process(bench: Bench) -> None:
    class OneModule(NoModules):
        def statuses(self) -> list[ModuleStatus]:
            pids = (os.getpid(), None)
            return [ModuleStatus("m", ModuleState.READY, 0.0, "", 0, 1, pid) for pid in pids]

    bench.machine.modules = OneModule()
    running, stopped = (await build_status_view(bench.machine, bench.report))["modules"]
    assert running["memory_bytes"] > 1 << 20
    assert stopped["memory_bytes"] is None


async def test_processes_are_listed(bench: Bench) -> None:
    class TwoProcesses(NoProcesses):
        def statuses(self) -> list[ProcessStatus]:
            return [
                ProcessStatus("a", ProcessState.RUNNING, 1.0, "", 2, os.getpid()),
                ProcessStatus("b", ProcessState.UNHEALTHY, 3.0, "exited", 0, None),
            ]

    bench.machine.processes = TwoProcesses()
    running, failed = (await build_status_view(bench.machine, bench.report))["processes"]
    assert running.pop("memory_bytes") > 1 << 20
    assert running.pop("cpu_seconds") > 0
    assert running.pop("uptime_seconds") > 0
    common = {"id": "a", "state": "running", "reason": None, "since": 1.0}
    assert running == {**common, "restarts": 2, "pid": os.getpid()}
    assert (failed["state"], failed["reason"], failed["pid"]) == ("unhealthy", "exited", None)
    assert failed["memory_bytes"] is None
