"""Remotes with far too many resources, or with others each time: local calls do not notice."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.fault import hostile_remote
from tests.fault.local_calls import LOCAL, measure_on_schedule, run_twin
from tests.interop.test_remotes import remote, wait_for_state
from tests.support.machine.running import Server, run_server, start_server
from tests.support.media.rtsp_server import free_port
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time

from cogwork.remotes.names import MAX_RESOURCES

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = size(ci=3, full=60)
FAR = "rdk:remote:/far"
FIRST = "rdk:component:sensor/far:s0"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with run_twin(tmp_path_factory.mktemp("machines")) as twin:
        yield twin


async def test_remote_with_too_many_resources(twin: Server, tmp_path: Path) -> None:
    async with run_cell(tmp_path, "many", 100_000) as cell:
        await check_local_calls(cell, twin, "100,000 names")
        reason = (await wait_for_state(cell, FAR, "unhealthy"))["reason"]
        print(reason)
        assert reason.startswith("99,000 of its resources are not available here")
        await cell.out.wait_for("remote far has a problem: 99,000 of its resources")
        last = f"rdk:component:sensor/far:s{MAX_RESOURCES - 1}"
        await wait_for_state(cell, last, "ready")
        names = [each["name"] for each in (await cell.status())["resources"]]
        assert sum("/far:" in name for name in names) == MAX_RESOURCES


async def test_remote_whose_resources_have_other_names_each_time(
    twin: Server, tmp_path: Path
) -> None:
    async with run_cell(tmp_path, "changing", 500) as cell:
        await check_local_calls(cell, twin, "500 names that change")
        reason = (await wait_for_state(cell, FAR, "unhealthy"))["reason"]
        print(reason)
        assert reason.startswith("its resources change so often")


@pytest.mark.soak
async def test_remote_that_closes_its_connections(twin: Server, tmp_path: Path) -> None:
    async with run_cell(tmp_path, "flapping", 500) as cell:
        await check_local_calls(cell, twin, "500 names that come and go")


async def check_local_calls(cell: Server, twin: Server, name: str) -> None:
    """Compare them with those to a machine without remotes, from when the remote is hostile."""

    async def turn_hostile() -> None:
        find_trigger(cell.file.parents[1]).touch()
        await pass_time(SECONDS)

    beside, without = await measure_on_schedule(cell, twin, turn_hostile, name)
    assert beside.failed == 0
    assert beside.p50 < limit(2) * without.p50
    assert beside.p99 < limit(2) * without.p99


@contextlib.asynccontextmanager
async def run_cell(directory: Path, mode: str, number: int) -> AsyncIterator[Server]:
    """Run a machine with a remote that turns hostile when a file exists."""
    (directory / "cell").mkdir()
    port = free_port()
    program = (sys.executable, hostile_remote.__file__)
    arguments = [str(port), str(find_trigger(directory)), mode, str(number)]
    far = remote("far", port, frame={"parent": "world"})
    config = {"components": [LOCAL], "remotes": [far]}
    async with start_server(arguments, program=program) as server:
        await server.out.wait_for("listening")
        async with run_server(config, directory / "cell") as cell:
            await wait_for_state(cell, FIRST, "ready")
            yield cell


def find_trigger(directory: Path) -> Path:
    return directory / "hostile"
