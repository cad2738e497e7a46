"""Calls to a local resource, to see whether trouble with a remote delays them."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grpclib import GRPCError
from grpclib.exceptions import StreamTerminatedError
from tests.interop.test_sdk_client import component
from tests.support.machine.running import Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.own_time import own_time
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time
from viam.components.sensor import Sensor

SCHEDULE = 0.01
"""Seconds between calls, which go to the two machines in turn."""
TIMEOUT = 20.0
MAX_RATIO = limit(1.2)
ATTEMPTS = size(ci=3, full=1)
_RESOLUTION = 0.001
"""Seconds."""
LOCAL = component("sensor", "local", readings={"ok": True})


@contextlib.asynccontextmanager
async def run_twin(directory: Path) -> AsyncIterator[Server]:
    """Run a machine that has no remotes, to compare with."""
    (directory / "twin").mkdir()
    async with run_server({"components": [LOCAL]}, directory / "twin") as twin:
        yield twin


async def compare(
    cell: Server, twin: Server, trouble: Callable[[], Awaitable[None]], name: str
) -> None:
    """Compare local calls during the trouble with those to a machine that has no remotes.

    Both are called in turn, so whatever else this computer does, such as starting the remote,
    delays both. A single pause of it doubles the quantile of a short run, so the trouble is
    repeated: if it delays calls, it does so each time.
    """
    for _ in range(ATTEMPTS):
        ratio = await _measure_ratio(cell, twin, trouble, name)
        if ratio < MAX_RATIO:
            break
    assert ratio < MAX_RATIO


async def _measure_ratio(
    cell: Server, twin: Server, trouble: Callable[[], Awaitable[None]], name: str
) -> float:
    durations: tuple[list[float], list[float]] = ([], [])
    async with connect_sdk(cell.port) as cell_robot, connect_sdk(twin.port) as twin_robot:
        sensors = [Sensor.from_robot(each, "local") for each in (cell_robot, twin_robot)]
        calling = asyncio.ensure_future(call_in_turn(sensors, durations))
        try:
            await trouble()
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
    ratio = p99(durations[0]) / p99(durations[1])
    print(
        f"{name}: p99 of {len(durations[0])} local calls {p99(durations[0]) * 1e3:.1f} ms, "
        f"{ratio:.2f} of those without a remote"
    )
    return ratio


class TimedCall(NamedTuple):
    seconds: float
    failed: bool


@dataclass(frozen=True, slots=True)
class Latencies:
    """Milliseconds from when calls were due until they were answered, or failed."""

    count: int
    failed: int
    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, calls: list[TimedCall]) -> Latencies:
        durations = [call.seconds for call in calls]
        quantiles = statistics.quantiles(durations, n=100)
        times = (quantiles[49], quantiles[98], max(durations))
        failed = sum(call.failed for call in calls)
        return cls(len(calls), failed, *(round(each * 1e3, 1) for each in times))


async def measure_on_schedule(
    cell: Server, twin: Server, trouble: Callable[[], Awaitable[None]], name: str
) -> tuple[Latencies, Latencies]:
    """Call the machine and one without remotes at fixed times, even if it has not answered yet.

    A server that is stuck for a second then delays all the calls of that second, not only one.
    """
    found: tuple[list[TimedCall], list[TimedCall]] = ([], [])
    async with connect_sdk(cell.port) as cell_robot, connect_sdk(twin.port) as twin_robot:
        sensors = [Sensor.from_robot(each, "local") for each in (cell_robot, twin_robot)]
        async with asyncio.TaskGroup() as calls:
            calling = asyncio.ensure_future(call_on_schedule(sensors, found, calls))
            try:
                await trouble()
            finally:
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)
    beside, without = Latencies.of(found[0]), Latencies.of(found[1])
    print(f"{name}: {beside}, without: {without}")
    return beside, without


async def call_on_schedule(
    sensors: list[Sensor],
    results: tuple[list[TimedCall], list[TimedCall]],
    calls: asyncio.TaskGroup,
) -> None:
    due = time.perf_counter()
    turns = list(zip(sensors, results, strict=True))
    while True:
        for sensor, found in turns:
            due += SCHEDULE
            await pass_time(due - time.perf_counter())
            calls.create_task(call_once(sensor, found, due))


async def call_once(sensor: Sensor, results: list[TimedCall], due: float) -> None:
    try:
        await sensor.get_readings(timeout=TIMEOUT)
        failed = False
    except (GRPCError, StreamTerminatedError, TimeoutError, OSError):
        failed = True
    results.append(TimedCall(time.perf_counter() - due, failed))


async def call_in_turn(sensors: list[Sensor], durations: tuple[list[float], list[float]]) -> None:
    """Call both again and again, and note how long each call takes."""
    turns = list(zip(sensors, durations, strict=True))
    while True:
        for sensor, found in turns:
            began = own_time()
            await sensor.get_readings()
            found.append(max(_RESOLUTION, own_time() - began))
        # The first call after a pause takes longer.
        turns.reverse()
        await pass_time(0.01)


def p99(durations: list[float]) -> float:
    # Not extrapolated, which a single pause at the end of a short run would multiply.
    return statistics.quantiles(durations, n=100, method="inclusive")[-1]
