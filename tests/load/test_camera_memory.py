"""The memory of a server whose cameras are watched for half an hour."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import psutil
import pytest
from grpclib.client import Channel
from tests.load.belts import make_belt
from tests.support.machine.running import Config, run_server
from tests.support.sizes import FULL
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402

CAMERAS = 4
RATE = 15
SECONDS = 1800 if FULL else 120
SETTLE = 300 if FULL else 60
"""Seconds after which memory stays the same. Until then each conveyor draws the parts that it
keeps, and the C library fills the arenas of the threads that encode."""
MAX_SLOPE = 0.2
"""MiB per minute after that."""
MIB = 1 << 20

pytestmark = [pytest.mark.alone, pytest.mark.soak, pytest.mark.timeout(SECONDS + 120)]


def machine() -> Config:
    return {"components": [make_belt(number, 640, 480, RATE) for number in range(CAMERAS)]}


async def test_memory_stays_the_same_while_cameras_are_watched(tmp_path: Path) -> None:
    async with run_server(machine(), tmp_path) as server:
        await server.wait_for_status(state="running")
        process = psutil.Process(server.pid)
        channels = [Channel("localhost", server.port) for _ in range(CAMERAS)]
        start = time.monotonic()
        images = 0
        samples: list[tuple[float, float]] = []

        async def watch(client: CameraClient) -> None:
            nonlocal images
            while time.monotonic() - start < SECONDS:
                await client.get_images(filter_source_names=["color"], timeout=60)
                images += 1
                await pass_time(1 / RATE)

        async def measure() -> None:
            while (seconds := time.monotonic() - start) < SECONDS:
                samples.append((seconds, process.memory_info().rss / MIB))
                await pass_time(1)

        try:
            await asyncio.gather(
                measure(),
                *(watch(CameraClient(f"belt-{n}", each)) for n, each in enumerate(channels)),
            )
        finally:
            for channel in channels:
                channel.close()
    settled = [each for each in samples if each[0] >= SETTLE]
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope * 60
    first, middle, last = samples[0][1], settled[0][1], samples[-1][1]
    print(
        f"{images} images; {first:.0f} MiB at first, {middle:.0f} after {SETTLE} s, "
        f"{last:.0f} after {SECONDS} s; {slope:+.2f} MiB per minute"
    )
    assert slope <= MAX_SLOPE
