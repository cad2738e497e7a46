"""Several cameras share one model that cannot keep up with them: each gets its share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from grpclib.client import Channel
from tests.load.belts import make_belt
from tests.support.machine.running import Config, run_server
from tests.support.models.real_models import model_path
from tests.support.sizes import FULL, size
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.services.vision import VisionClient  # noqa: E402

SECONDS = size(ci=4, full=300)
CAMERAS = 4
RATE = 15
UNFAIR = 0.1
MOST_GROWTH = 20.0
"""MiB, in the second half of the time: a conveyor first draws the parts that it keeps."""
MIB = 1 << 20


def machine(model: Path) -> Config:
    cameras = [make_belt(number, 320, 240, RATE) for number in range(CAMERAS)]
    services = [
        {
            "name": "model",
            "api": "rdk:service:mlmodel",
            "model": "onnx_cpu",
            "attributes": {"model_path": str(model), "num_threads": 1},
        },
        {
            "name": "eyes",
            "api": "rdk:service:vision",
            "model": "mlmodel",
            "attributes": {"mlmodel_name": "model"},
        },
    ]
    return {"components": cameras, "services": services}


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize(
    "callers", [1, pytest.param(3, marks=pytest.mark.skipif(not FULL, reason="takes long"))]
)
async def test_each_camera_gets_its_share(tmp_path: Path, callers: int) -> None:
    async with run_server(machine(model_path("yolov2tiny_v8layout_w8.onnx")), tmp_path) as server:
        await server.wait_for_status(state="running")
        process = psutil.Process(server.pid)
        looks = [0] * CAMERAS
        channels = [Channel("localhost", server.port) for _ in range(CAMERAS * callers)]
        clients = [VisionClient("eyes", channel) for channel in channels]
        for number, client in enumerate(clients):  # the first takes longer
            await client.get_detections_from_camera(f"belt-{number % CAMERAS}", timeout=60)
        before: Any = await clients[0].get_status()
        began = time.monotonic()
        weights: list[float] = []

        async def detect_repeatedly(number: int, client: VisionClient) -> None:
            while time.monotonic() - began < SECONDS:
                await client.get_detections_from_camera(f"belt-{number}", timeout=60)
                looks[number] += 1

        async def measure_memory() -> None:
            while time.monotonic() - began < SECONDS:
                weights.append(process.memory_info().rss / MIB)
                await pass_time(0.1)

        try:
            await asyncio.gather(
                measure_memory(),
                *(detect_repeatedly(number % CAMERAS, each) for number, each in enumerate(clients)),
            )
            after: Any = await clients[0].get_status()
        finally:
            for channel in channels:
                channel.close()
    inferred = (after["pictures"] - before["pictures"]) / SECONDS
    growth = weights[-1] - weights[len(weights) // 2]
    print(
        f"{callers} callers a camera: looks {looks}, {inferred:.1f} pictures/s of "
        f"{CAMERAS * RATE}, grew {growth:.1f} MiB"
    )
    # Within a few seconds, one late frame makes a difference of one or two calls.
    assert max(looks) - min(looks) <= max(size(ci=6, full=2), UNFAIR * max(looks))
    assert growth < MOST_GROWTH
