"""Fairness of four cameras that share one model at 15 frames per second each.

Each of four clients requests the detections of its own camera 15 times a second. The benchmark
reports the rate of each camera, the skipped frames, memory and CPU usage.

    python -m benchmarks.camera_fairness [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from benchmarks.parts.server_process import running_server

CAMERAS = 4
RATE = 15.0
MAX_UNFAIRNESS = 0.10
MAX_GROWTH = 0.05
MODEL = Path(__file__).parents[1] / "src/cogwork/drivers/mlmodel/demo/conveyor.onnx"
_VISION = "/viam.service.vision.v1.VisionService"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    with running_server(build_config(), "eyes") as (address, process):
        return asyncio.run(measure(address, process, arguments.seconds))


def build_config() -> dict[str, Any]:
    attributes = {"scene": "conveyor", "width": 640, "height": 480, "frame_rate": RATE}
    return {
        "network": {"bind_address": "localhost:0"},
        "components": [
            {
                "name": f"belt{number}",
                "api": "rdk:component:camera",
                "model": "fake",
                "attributes": {**attributes, "seed": number},
            }
            for number in range(CAMERAS)
        ],
        "services": [
            {
                "name": "model",
                "api": "rdk:service:mlmodel",
                "model": "onnx_cpu",
                "attributes": {"model_path": str(MODEL), "num_threads": 1},
            },
            {
                "name": "eyes",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {"mlmodel_name": "model", "default_minimum_confidence": 0.5},
            },
        ],
    }


async def measure(address: str, process: psutil.Process, seconds: float) -> int:
    import grpc.aio

    async with grpc.aio.insecure_channel(address) as channel:
        await _watch_all(channel, min(5.0, seconds))  # warm-up
        process.cpu_percent()
        before = process.memory_info().rss
        taken = await _watch_all(channel, seconds)
        after, busy = process.memory_info().rss, process.cpu_percent()
        status = await _fetch_status(channel)
    return print_report(taken, seconds, before, after, busy, status)


def print_report(
    taken: list[list[float]],
    seconds: float,
    before: int,
    after: int,
    busy: float,
    status: dict[str, Any],
) -> int:
    rates = [len(each) / seconds for each in taken]
    unfair = 1 - min(rates) / max(rates)
    growth = after / before - 1
    for number, each in enumerate(taken):
        median = statistics.median(each) * 1e3
        print(f"belt{number}: {rates[number]:5.2f} frames/s, median {median:.1f} ms")
    print(
        f"{seconds:.0f} s: rates differ by {unfair:.1%} (at most {MAX_UNFAIRNESS:.0%}); "
        f"{status['pictures']:.0f} frames inferred, {status['skipped']:.0f} skipped; "
        f"memory {before >> 20} -> {after >> 20} MiB ({growth:+.1%}); "
        f"CPU {busy:.0f}% of one core"
    )
    return 0 if unfair <= MAX_UNFAIRNESS and growth <= MAX_GROWTH else 1


async def _watch_all(channel: Any, seconds: float) -> list[list[float]]:
    end = time.perf_counter() + seconds
    return await asyncio.gather(*(_watch(channel, f"belt{n}", end) for n in range(CAMERAS)))


async def _watch(channel: Any, camera: str, end: float) -> list[float]:
    from viam.gen.service.vision.v1 import vision_pb2 as vision

    call = channel.unary_unary(f"{_VISION}/GetDetectionsFromCamera")
    request = vision.GetDetectionsFromCameraRequest(name="eyes", camera_name=camera)
    data, taken = request.SerializeToString(), list[float]()
    while (start := time.perf_counter()) < end:
        await call(data, timeout=10)
        taken.append(time.perf_counter() - start)
        await asyncio.sleep(max(0.0, 1 / RATE - taken[-1]))
    return taken


async def _fetch_status(channel: Any) -> dict[str, Any]:
    from viam.gen.common.v1 import common_pb2 as common

    from cogwork.resource.messages.structs import to_dict

    call = channel.unary_unary(
        f"{_VISION}/GetStatus", response_deserializer=common.GetStatusResponse.FromString
    )
    reply = await call(common.GetStatusRequest(name="eyes").SerializeToString(), timeout=10)
    return to_dict(reply.result)


if __name__ == "__main__":
    sys.exit(main())
