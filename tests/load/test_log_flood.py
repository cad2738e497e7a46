"""A machine that floods its log, beside 200 others and their owner, on a disk of 1 GB.

Whether the machine sends its lines changes every few seconds, so that both are measured under the
same load of the computer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.load import flooding_machine
from tests.load.test_fleet import percentile, run_machines
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import Output, http_get
from tests.support.own_time import own_time
from tests.support.sizes import size
from tests.support.small_disk import small_disk
from tests.support.waiting import pass_time, run_others
from viam.app.app_client import AppClient

MACHINES = 200
INTERVAL = 10.0
"""Seconds between two polls of a machine."""
SECONDS = size(ci=120, full=600)
PHASE = 10
"""Seconds."""
SETTLING = 2
"""Seconds at the begin of a phase that do not count."""
COMMANDS = ("pause", "upload", "pause", "ignore")
DISK = 1 << 20
"""Kilobytes."""

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(1800)]


class Flood:
    def __init__(self, process: asyncio.subprocess.Process, output: Output) -> None:
        self._process = process
        self._output = output

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())

    async def counts(self) -> dict[str, int]:
        """Return what it prints next."""
        since = len(self._output.lines)
        found = await self._output.wait_for(r"\{.*\}", since)
        return dict(json.loads(found[0]))


@asynccontextmanager
async def run_flood(address: str, directory: Path, part: str, secret: str) -> AsyncIterator[Flood]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", flooding_machine.__name__, address, str(directory)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    output = Output()
    reading = asyncio.ensure_future(output.follow(process.stdout))
    flood = Flood(process, output)
    flood.send(f"{part} {secret}")
    try:
        yield flood
    finally:
        process.kill()
        await process.wait()
        await reading
        await run_others()


async def create_machines(app: AppClient, count: int) -> dict[str, str]:
    """Return the secrets of their parts."""
    (organization,) = await app.list_organizations()
    location = await app.create_location(organization.id, "Hall")
    found = {}
    for number in range(count):
        machine = await app.new_robot(f"machine-{number}", location.id)
        (part,) = await app.get_robot_parts(machine)
        found[part.id] = part.secret
    return found


class Writer:
    """An owner who writes a record twice a second."""

    def __init__(self, app: AppClient, organization: str) -> None:
        self._app = app
        self._organization = organization
        self.written = 0
        self.times: list[float] = []

    async def run(self) -> None:
        while True:
            began = own_time()
            await self._app.create_location(self._organization, f"Hall {self.written}")
            self.times.append(max(0.0, own_time() - began))
            self.written += 1
            await pass_time(0.5)


async def test_flood_does_not_delay_others(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", DISK) as disk:
        process = CloudProcess(disk / "cloud")
        await process.initialize()
        async with process.serve():
            client = await process.client().connect()
            await flood_beside_others(process, client.app_client, tmp_path)
            client.close()
        usage = json.loads(await process.command("usage", "--json"))
    (flooding,) = [each for each in usage if each["refused"]]
    print(
        f"=> the cloud stored {flooding['lines']:,} lines of it, counted {flooding['dropped']:,} "
        f"as dropped by the machine and refused {flooding['refused']:,}"
    )
    assert len(usage) == MACHINES + 1


async def flood_beside_others(process: CloudProcess, app: AppClient, directory: Path) -> None:
    parts = await create_machines(app, MACHINES + 1)
    flooding, secret = parts.popitem()
    (organization,) = await app.list_organizations()
    writer = Writer(app, organization.id)
    polls: dict[str, list[list[float]]] = defaultdict(list)
    writes: dict[str, list[list[float]]] = defaultdict(list)
    """By command, of each phase."""
    async with (
        run_machines(process.address, parts, INTERVAL) as others,
        run_flood(process.address, directory / "spool", flooding, secret) as flood,
    ):
        await others.wait_for(f'"watching": {MACHINES},', 0, within=120)
        writing = asyncio.create_task(writer.run())
        began, phase = time.monotonic(), 0
        while time.monotonic() - began < SECONDS:
            command = COMMANDS[phase % len(COMMANDS)]
            flood.send(command)
            await pass_time(SETTLING)
            since, written = len(others.lines), len(writer.times)
            await pass_time(PHASE - SETTLING)
            lines: list[Any] = [json.loads(line) for line in others.lines[since:]]
            polls[command].append([each for line in lines for each in line["polls"]])
            writes[command].append(writer.times[written:])
            assert sum(line["failed"] for line in lines) == 0
            assert not writing.done(), "a record could not be written"
            phase += 1
        flood.send("drain")
        counts = await flood.counts()
        async with asyncio.timeout(300):
            while counts["queued"]:
                counts = await flood.counts()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    host, _, port = process.address.partition(":")
    status, health = await http_get(host, int(port), "/healthz")
    print(
        f"=> {SECONDS} s, {MACHINES} machines beside one with {counts['put']:,} lines: "
        f"{counts['delivered']:,} delivered, {counts['dropped']:,} dropped; "
        f"{counts['ignored']} refusals ignored; {writer.written} records written; {health.strip()}"
    )
    for kind, times in (("polls", polls), ("writes", writes)):
        for command, phases in times.items():
            values = sorted(itertools.chain.from_iterable(phases))
            print(
                f"=> {kind} beside {command}: {len(values)}, p50 "
                f"{percentile(values, 0.5) * 1000:.1f} ms, p99 "
                f"{percentile(values, 0.99) * 1000:.1f} ms; p99 of a phase "
                f"{usual_p99(phases) * 1000:.1f} ms"
            )
    await wait_for_dropped(app, flooding, counts["dropped"])
    assert status == 200
    assert counts["put"] == counts["delivered"] + counts["dropped"]
    for command in ("upload", "ignore"):
        ratio = usual_p99(polls[command]) / usual_p99(polls["pause"])
        print(f"=> polls beside {command}: {ratio:.2f} times the p99 of those without")
        assert ratio <= 1.5, command


def usual_p99(phases: Sequence[Sequence[float]]) -> float:
    """Return the median of the phases, because in some of them the whole computer stalls."""
    return statistics.median(percentile(sorted(each), 0.99) for each in phases)


async def wait_for_dropped(app: AppClient, part: str, dropped: int) -> None:
    """Wait until the cloud shows that so many lines were dropped.

    A request that took too long is sent again, and what it says counts twice.
    """
    shown = 0
    async with asyncio.timeout(120):
        while shown < dropped:
            info: Any = (await app.get_robot_part(part)).user_supplied_info or {}
            shown = int(info.get("log", {}).get("dropped_lines", 0))
            await pass_time(1)
    assert shown <= 1.1 * dropped
