"""Cost of GetImages for many callers of one frame, relative to one bare OpenCV encoding.

Each round has a new 1280x720 image. `bare` encodes it once with OpenCV; then 1 and 8 callers
request it from the camera service concurrently, and each gets its own serialized reply. The
measurements are interleaved, so that ratios compare adjacent milliseconds. The same over real gRPC,
with a client on the same loop, is reported without a target, because eight replies cross a socket.

    python -m benchmarks.shared_encoding [--rounds 60]
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

from cogwork.core.malloc import tune_malloc
from cogwork.core.workers import Workers
from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.graph.name import Api
from cogwork.resource.frame import Frame, Image, get_frames
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.grpc import grpc_server

WIDTH, HEIGHT = 1280, 720
CALLERS = (1, 8)
MAX_RATIO = 1.3
"""Maximum cost of eight callers, relative to one encoding."""
API = Api.parse("rdk:component:camera")

Ask = Callable[[], Awaitable[object]]


class SyntheticCamera:
    """A camera that returns the image it was given."""

    def __init__(self) -> None:
        self.workers = Workers("camera")
        self.frame: Frame | None = None

    async def frames(self, _: Sequence[str] = ()) -> Sequence[Frame]:
        assert self.frame is not None
        return [self.frame]

    def set_image(self, pixels: Any) -> None:
        self.frame = Frame(Image(pixels, self.workers), time.time())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    tune_malloc()
    import uvloop

    times = uvloop.run(measure(arguments.rounds))
    return print_report(times)


async def measure(rounds: int) -> dict[str, list[float]]:
    # This import also loads the SDK's messages.
    from cogwork.resource.services.camera import CameraService, camera_methods

    camera = SyntheticCamera()
    service = CameraService(API, lambda _: camera)
    table = HandlerTable()
    table.add(
        "viam.component.camera.v1.CameraService", lambda: camera_methods(API, lambda _: camera)
    )
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    conveyor = Conveyor(seed=7, width=WIDTH, height=HEIGHT)
    times: dict[str, list[float]] = {}
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        asks = {"in process": _make_service_call(service), "over gRPC": _make_channel_call(channel)}
        for number in range(rounds + 3):
            pixels, _ = conveyor.render(conveyor.scene_at(number / 15))
            cases: dict[str, Ask] = {"bare": partial(_encode_bare, camera.workers, pixels)}
            for way, ask in asks.items():
                for callers in CALLERS:
                    cases[f"{way}, {callers}"] = partial(_call_concurrently, ask, callers)
            for name in sorted(cases, reverse=bool(number % 2)):
                camera.set_image(pixels.copy())
                took = await _time_call(cases[name])
                if number >= 3:  # the first rounds are warm-up
                    times.setdefault(name, []).append(took)
        await _check_shared_memory(camera)
    await server.stop(None)
    camera.workers.close()
    return times


def print_report(times: dict[str, list[float]]) -> int:
    bare = times.pop("bare")
    print(f"one encoding of {WIDTH}x{HEIGHT}: {statistics.median(bare) * 1e3:.2f} ms")
    print(f"{'callers':16} {'ratio':>6} {'aim':>5}")
    worst = 0.0
    for name, took in times.items():
        ratio = statistics.median(one / other for one, other in zip(took, bare, strict=True))
        aimed = name.startswith("in process")
        worst = max(worst, ratio if aimed else 0.0)
        print(f"{name:16} {ratio:6.2f} {MAX_RATIO if aimed else '':>5}")
    print("a frame read in process is the same memory: yes")
    return 0 if worst <= MAX_RATIO else 1


async def _encode_bare(workers: Workers, pixels: Any) -> object:
    """Encode in a thread, as a server must not block its event loop."""
    return await workers.run(cv2.imencode, ".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, 75))


def _make_service_call(service: Any) -> Ask:
    from viam.gen.component.camera.v1 import camera_pb2 as camera

    request = camera.GetImagesRequest(name="camera")
    stream: Any = SimpleNamespace(deadline=None, metadata={})

    async def ask() -> bytes:
        reply = await service.get_images(request, stream)
        data: bytes = reply.SerializeToString()
        return data

    return ask


def _make_channel_call(channel: Any) -> Ask:
    from viam.gen.component.camera.v1 import camera_pb2 as camera

    call = channel.unary_unary("/viam.component.camera.v1.CameraService/GetImages")
    request = camera.GetImagesRequest(name="camera").SerializeToString()

    async def ask() -> bytes:
        data: bytes = await call(request)
        return data

    return ask


async def _call_concurrently(ask: Ask, callers: int) -> object:
    return await asyncio.gather(*(ask() for _ in range(callers)))


async def _time_call(ask: Ask) -> float:
    start = time.perf_counter()
    await ask()
    return time.perf_counter() - start


async def _check_shared_memory(camera: SyntheticCamera) -> None:
    from cogwork.core.clock import SystemClock

    [first] = await get_frames(camera, camera.workers, SystemClock())
    [second] = await get_frames(camera, camera.workers, SystemClock())
    assert camera.frame is not None
    assert first.pixels is second.pixels is camera.frame.pixels
    assert np.shares_memory(first.pixels, camera.frame.pixels)


if __name__ == "__main__":
    raise SystemExit(main())
