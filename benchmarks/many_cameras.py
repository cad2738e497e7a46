"""Eight cameras at 15 frames per second on one machine: rates, drops, memory.

Four show conveyor belts, two play 1280x720 video files, one shows colors, one is a transform of a
belt. A client requests the newest image of each 15 times a second, as JPEG over gRPC, and counts
the distinct ones. The missed frames that the machine itself reports are shown as well.

    python -m benchmarks.many_cameras [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from benchmarks.parts.server_process import running_server

RATE = 15.0
MIN_RATE_SHARE = 0.95
"""Minimum share of the rate for each camera, unless the machine reports the missing frames."""
MAX_GROWTH = 0.05


@dataclass
class CameraStats:
    """Frames of one camera, as seen by the client."""

    pictures: set[int] = field(default_factory=set)
    bytes: int = 0
    errors: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        video = Path(directory) / "video.mp4"
        make_video(video)
        config = build_config(str(video))
        with running_server(config, "turned") as (address, process):
            return asyncio.run(measure(address, process, config, arguments.seconds))


def build_config(video: str) -> dict[str, Any]:
    size = {"width": 640, "height": 480}
    belts = [
        _camera_config(
            f"belt{n}", "fake", {"scene": "conveyor", "seed": n, "frame_rate": RATE, **size}
        )
        for n in range(4)
    ]
    files = [_camera_config(f"video{n}", "ffmpeg", {"video_path": video}) for n in range(2)]
    colours = _camera_config("colours", "fake", {"animated": True, "frame_rate": RATE, **size})
    half = {"type": "resize", "attributes": {"width_px": 320, "height_px": 240}}
    turn = {"type": "rotate", "attributes": {"angle_degs": 90}}
    turned = _camera_config("turned", "transform", {"source": "belt0", "pipeline": [half, turn]})
    return {
        "network": {"bind_address": "localhost:0"},
        "components": [*belts, *files, colours, turned],
    }


def _camera_config(name: str, model: str, attributes: dict[str, Any]) -> dict[str, Any]:
    api = "rdk:component:camera"
    return {"name": name, "api": api, "model": model, "attributes": attributes}


def make_video(path: Path) -> None:
    import av

    from cogwork.drivers.camera.conveyor import Conveyor

    conveyor = Conveyor(seed=99, width=1280, height=720)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=int(RATE))
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for number in range(150):
            pixels, _ = conveyor.render(conveyor.scene_at(number / RATE))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="bgr24")))
        container.mux(stream.encode())


async def measure(
    address: str, process: psutil.Process, config: dict[str, Any], seconds: float
) -> int:
    import grpc.aio

    names = [each["name"] for each in config["components"]]
    async with grpc.aio.insecure_channel(address) as channel:
        await watch_all(channel, names, min(5.0, seconds))  # warm-up
        process.cpu_percent()
        before = process.memory_info().rss
        started = time.perf_counter()
        seen = await watch_all(channel, names, seconds)
        took = time.perf_counter() - started
        after, busy = process.memory_info().rss, process.cpu_percent()
        statuses = {name: await _fetch_status(channel, name) for name in names}
    return print_report(seen, statuses, took, before, after, busy)


def print_report(
    seen: dict[str, CameraStats],
    statuses: dict[str, dict[str, Any]],
    took: float,
    before: int,
    after: int,
    busy: float,
) -> int:
    kept = True
    print(f"{'camera':10} {'rate':>6} {'kB':>5} {'missed':>7} {'errors':>7}")
    for name, watched in seen.items():
        rate = len(watched.pictures) / took
        missed = int(statuses[name].get("missed", 0))
        size = watched.bytes // max(len(watched.pictures), 1) // 1000
        print(f"{name:10} {rate:6.2f} {size:5} {missed:7} {len(watched.errors):7}")
        for error in sorted(set(watched.errors))[:2]:
            print(f"  {error}")
        held = rate >= MIN_RATE_SHARE * RATE or missed > 0
        kept = kept and held and not watched.errors
    growth = after / before - 1
    print(
        f"{took:.0f} s, memory {before >> 20} -> {after >> 20} MiB ({growth:+.1%}), "
        f"CPU {busy:.0f}% of one core"
    )
    return 0 if kept and growth <= MAX_GROWTH else 1


async def watch_all(channel: Any, names: list[str], seconds: float) -> dict[str, CameraStats]:
    end = time.perf_counter() + seconds
    watched = await asyncio.gather(*(_watch(channel, name, end) for name in names))
    return dict(zip(names, watched, strict=True))


async def _watch(channel: Any, name: str, end: float) -> CameraStats:
    import grpc
    from viam.gen.component.camera.v1 import camera_pb2 as camera

    watched = CameraStats()
    call = channel.unary_unary(
        "/viam.component.camera.v1.CameraService/GetImages",
        response_deserializer=camera.GetImagesResponse.FromString,
    )
    source = ["color"] if name.startswith(("belt", "turned")) else []
    request = camera.GetImagesRequest(name=name, filter_source_names=source).SerializeToString()
    while (now := time.perf_counter()) < end:
        try:
            reply = await call(request, timeout=5)
            moment = reply.response_metadata.captured_at.ToNanoseconds()
            if moment not in watched.pictures:
                watched.bytes += len(reply.images[0].image)
            watched.pictures.add(moment)
        except grpc.aio.AioRpcError as error:
            watched.errors.append(f"{error.code().name}: {error.details()}")
        # Poll slightly faster than the frame rate, because clocks of equal rate would miss frames.
        await asyncio.sleep(max(0.0, 1 / (1.5 * RATE) - (time.perf_counter() - now)))
    return watched


async def _fetch_status(channel: Any, name: str) -> dict[str, Any]:
    from viam.gen.common.v1 import common_pb2 as common

    from cogwork.resource.messages.structs import to_dict

    call = channel.unary_unary(
        "/viam.component.camera.v1.CameraService/GetStatus",
        response_deserializer=common.GetStatusResponse.FromString,
    )
    reply = await call(common.GetStatusRequest(name=name).SerializeToString(), timeout=5)
    return to_dict(reply.result)


if __name__ == "__main__":
    sys.exit(main())
