"""A cloud with many machines, beside a person who uses it."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from tests.load import simulated_machines
from tests.support.cloud.fleet import Cloud
from tests.support.machine.running import Output, Server, start_server
from tests.support.sizes import FULL, limit, size
from tests.support.waiting import pass_time, run_others

MACHINES = size(ci=50, full=1000)
SECONDS = size(ci=8, full=120)
INTERVAL = size(ci=2, full=10)
"""Seconds between two polls of a machine."""
SETTLING = size(ci=3, full=30)
"""Seconds after all machines connected at once. Their polls come together at first."""
PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")
MIB = 1 << 20

pytestmark = [pytest.mark.alone, pytest.mark.timeout(size(ci=240, full=1800))]


@asynccontextmanager
async def run_machines(
    address: str, parts: dict[str, str], interval: float
) -> AsyncIterator[Output]:
    """Simulate the machines, given the secrets of their parts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", simulated_machines.__name__, address, "3600", str(interval)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{part} {secret}\n" for part, secret in parts.items()).encode())
    process.stdin.close()
    output = Output()
    reading = asyncio.ensure_future(output.follow(process.stdout))
    try:
        yield output
    finally:
        process.kill()
        await process.wait()
        await reading
        await run_others()


async def create_machines(cloud: Cloud) -> dict[str, str]:
    client = await cloud.connect()
    app = client.app_client
    (organization,) = await app.list_organizations()
    location = await app.create_location(organization.id, "Hall 1")
    found = {}
    for number in range(MACHINES):
        machine = await app.new_robot(f"machine-{number}", location.id)
        (part,) = await app.get_robot_parts(machine)
        found[part.id] = part.secret
    client.close()
    return found


async def wait_until_watching(output: Output, since: int) -> float:
    """Return the seconds until all machines are connected."""
    began = time.monotonic()
    await output.wait_for(f'"watching": {MACHINES},', since, within=limit(60))
    return time.monotonic() - began


def measure(server: Server) -> tuple[float, float]:
    """Return the seconds of processor time and the memory of the cloud and its front process."""
    process = psutil.Process(server.pid)
    found = [process, *process.children(recursive=True)]
    times = [each.cpu_times() for each in found]
    used = sum(each.memory_info().rss for each in found)
    return sum(each.user + each.system for each in times), used


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]


async def test_machines_do_not_slow_each_other_down(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "cloud")]
    async with start_server(["init", *data], program=PROGRAM) as init:
        assert await init.exit_code() == 0
        key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
        key = (await init.out.wait_for(r"key: +(\S+)"))[1]
    serve = ["serve", *data, "--address", "localhost:0"]
    async with start_server(serve, program=PROGRAM) as server:
        await server.wait_until_serving()
        address = f"localhost:{server.port}"
        cloud = Cloud(address, key_id, key)
        parts = await create_machines(cloud)
        memory_before = measure(server)[1]
        async with run_machines(address, parts, INTERVAL) as output:
            connected = await wait_until_watching(output, 0)
            storm = (await use_beside(server, cloud, output, SETTLING)).lines
            calls, lines, share = await use_beside(server, cloud, output, SECONDS)
            memory = (measure(server)[1] - memory_before) / MACHINES
            server.signal(9)  # type: ignore[arg-type]
            await server.exit_code()
            serve[-1] = address
            since = len(output.lines)
            async with start_server(serve, program=PROGRAM) as again:
                await again.wait_until_serving()
                returned = await wait_until_watching(output, since)
    polls = polls_of(lines)
    failed = sum(line["failed"] for line in (*storm, *lines))
    print(
        f"=> {MACHINES} machines: all connected after {connected:.1f} s, again after a kill of the "
        f"cloud {returned:.1f} s; {len(polls)} polls: p50 {statistics.median(polls) * 1000:.0f} "
        f"ms, p99 {percentile(polls, 0.99) * 1000:.0f} ms (p99 of the first {SETTLING} s: "
        f"{percentile(polls_of(storm), 0.99) * 1000:.0f} ms); a person's calls: p50 "
        f"{statistics.median(calls) * 1000:.0f} ms, p99 {percentile(calls, 0.99) * 1000:.0f} ms; "
        f"{share:.2f} of a core; {memory / 1024:.0f} KiB for each machine"
    )
    assert failed == 0
    assert percentile(polls, 0.99) < limit(0.2)
    assert share < 1 or not FULL


def polls_of(lines: list[Any]) -> list[float]:
    return [each for line in lines for each in line["polls"]]


class Use(NamedTuple):
    calls: list[float]
    """The times of a person's calls."""
    lines: list[Any]
    """The reports of the machines meanwhile."""
    share: float
    """Of a core, used by the cloud."""


async def use_beside(server: Server, cloud: Cloud, output: Output, seconds: float) -> Use:
    client = await cloud.connect()
    (organization,) = await client.app_client.list_organizations()
    since, began, calls = len(output.lines), time.monotonic(), []
    processor = measure(server)[0]
    while (elapsed := time.monotonic() - began) < seconds:
        start = time.monotonic()
        await client.app_client.list_locations(organization.id)
        calls.append(time.monotonic() - start)
        await pass_time(0.1)
    client.close()
    share = (measure(server)[0] - processor) / elapsed
    return Use(calls, [json.loads(line) for line in output.lines[since:]], share)
