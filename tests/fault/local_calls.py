"""Calls to a local resource, to see whether trouble with a remote delays them."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.control_page import connect_sdk
from tests.interop.test_sdk_client import component
from tests.running import Server
from tests.sizes import limit, size
from viam.components.sensor import Sensor

QUIET = size(ci=2, full=10)
"""Seconds of calls to compare with."""
LOCAL = component("sensor", "local", readings={"ok": True})


@contextlib.asynccontextmanager
async def measured(cell: Server, durations: list[float]) -> AsyncIterator[None]:
    """Call a local resource again and again meanwhile."""
    async with connect_sdk(cell.port) as robot:
        local = Sensor.from_robot(robot, "local")

        async def call() -> None:
            while True:
                began = time.perf_counter()
                await local.get_readings()
                durations.append(time.perf_counter() - began)
                await asyncio.sleep(0.01)

        calling = asyncio.ensure_future(call())
        try:
            yield
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)


def p99(durations: list[float]) -> float:
    return statistics.quantiles(durations, n=100)[-1]


async def compare(cell: Server, trouble: Callable[[], Awaitable[None]], name: str) -> None:
    """Compare local calls during the trouble with those before and after it."""
    quiet: list[float] = []
    during: list[float] = []
    async with measured(cell, quiet):
        await asyncio.sleep(QUIET)
    async with measured(cell, during):
        await trouble()
    async with measured(cell, quiet):
        await asyncio.sleep(QUIET)
    ratio = p99(during) / p99(quiet)
    print(f"{name}: p99 of local calls {p99(during) * 1e3:.1f} ms, {ratio:.2f} of otherwise")
    # A single pause of this computer doubles the quantile of a short run.
    assert ratio < limit(1.2)
