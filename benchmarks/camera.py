"""What many eyes on one picture cost: GetImages beside one bare encoding by OpenCV.

Each round has a fresh picture of 1280x720. `bare` encodes it once with OpenCV; then 1 and 8
callers ask the camera service for it at the same time, each getting a reply of its own, as bytes
for the wire. They take turns, so that the ratio is of neighbouring milliseconds. The same over
real gRPC, with a client on the same loop, is shown beside it and has no aim: eight replies cross
a socket there.

    python -m benchmarks.camera [--rounds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import cv2
import grpc.aio
import numpy as np

from cogwork.core.memory import keep_large_blocks
from cogwork.core.workers import Workers
from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.graph.name import Api
from cogwork.resource.frame import Frame, Picture, frames_of
from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import HandlerTable

WIDTH, HEIGHT = 1280, 720
CALLERS = (1, 8)
MOST = 1.3
"""Of one encoding, for eight callers."""
API = Api.parse("rdk:component:camera")

Ask = Callable[[], Awaitable[object]]


class Eye:
    """A camera that sees what it is shown."""

    def __init__(self) -> None:
        self.workers = Workers("eye")
        self.frame: Frame | None = None

    async def frames(self, _: Sequence[str] = ()) -> Sequence[Frame]:
        assert self.frame is not None
        return [self.frame]

    def show(self, pixels: Any) -> None:
        self.frame = Frame(Picture(pixels, self.workers), time.time())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    keep_large_blocks()
    import uvloop

    times = uvloop.run(measure(arguments.rounds))
    return show(times)


async def measure(rounds: int) -> dict[str, list[float]]:
    # The SDK's messages come with it.
    from cogwork.resource.camera_service import CameraService, camera_methods

    eye = Eye()
    service = CameraService(API, lambda _: eye)
    table = HandlerTable()
    table.add("viam.component.camera.v1.CameraService", lambda: camera_methods(API, lambda _: eye))
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    conveyor = Conveyor(seed=7, width=WIDTH, height=HEIGHT)
    times: dict[str, list[float]] = {}
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        asks = {"in process": _ask_service(service), "over gRPC": _ask_channel(channel)}
        for number in range(rounds + 3):
            pixels, _ = conveyor.render(conveyor.scene(number / 15))
            cases: dict[str, Ask] = {"bare": partial(_bare, eye.workers, pixels)}
            for way, ask in asks.items():
                for callers in CALLERS:
                    cases[f"{way}, {callers}"] = partial(_at_once, ask, callers)
            for name in sorted(cases, reverse=bool(number % 2)):
                eye.show(pixels.copy())
                took = await _timed(cases[name])
                if number >= 3:  # the first ones warm up
                    times.setdefault(name, []).append(took)
        await _same_memory(eye)
    await server.stop(None)
    eye.workers.close()
    return times


def show(times: dict[str, list[float]]) -> int:
    bare = times.pop("bare")
    print(f"one encoding of {WIDTH}x{HEIGHT}: {statistics.median(bare) * 1e3:.2f} ms")
    print(f"{'callers':16} {'ratio':>6} {'aim':>5}")
    worst = 0.0
    for name, took in times.items():
        ratio = statistics.median(one / other for one, other in zip(took, bare, strict=True))
        aimed = name.startswith("in process")
        worst = max(worst, ratio if aimed else 0.0)
        print(f"{name:16} {ratio:6.2f} {MOST if aimed else '':>5}")
    print("a frame read in process is the same memory: yes")
    return 0 if worst <= MOST else 1


async def _bare(workers: Workers, pixels: Any) -> object:
    """Also in a thread: a server that encodes on its loop serves nobody meanwhile."""
    return await workers.run(cv2.imencode, ".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, 75))


def _ask_service(service: Any) -> Ask:
    from viam.gen.component.camera.v1 import camera_pb2 as camera

    request = camera.GetImagesRequest(name="eye")
    stream: Any = SimpleNamespace(deadline=None, metadata={})

    async def ask() -> bytes:
        reply = await service.get_images(request, stream)
        data: bytes = reply.SerializeToString()
        return data

    return ask


def _ask_channel(channel: Any) -> Ask:
    from viam.gen.component.camera.v1 import camera_pb2 as camera

    call = channel.unary_unary("/viam.component.camera.v1.CameraService/GetImages")
    request = camera.GetImagesRequest(name="eye").SerializeToString()

    async def ask() -> bytes:
        data: bytes = await call(request)
        return data

    return ask


async def _at_once(ask: Ask, callers: int) -> object:
    return await asyncio.gather(*(ask() for _ in range(callers)))


async def _timed(ask: Ask) -> float:
    start = time.perf_counter()
    await ask()
    return time.perf_counter() - start


async def _same_memory(eye: Eye) -> None:
    from cogwork.core.clock import SystemClock

    [first] = await frames_of(eye, eye.workers, SystemClock())
    [second] = await frames_of(eye, eye.workers, SystemClock())
    assert eye.frame is not None
    assert first.pixels is second.pixels is eye.frame.pixels
    assert np.shares_memory(first.pixels, eye.frame.pixels)


if __name__ == "__main__":
    raise SystemExit(main())
