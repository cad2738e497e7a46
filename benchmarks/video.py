"""Video in a browser: the time to the first frame, the delay, and the cost for the machine.

The TypeScript SDK in a headless Chromium watches a 1280x720 camera at 15 pictures per second over
WebRTC. The camera is read over HTTP, and draws the time into its pictures; the browser reads it
from the frames that it presents. So the delay includes every step from the drawing to the browser:
the camera's JPEG encoding, the server's decoding and encoding, the network, and the browser's
buffers, decoder and drawing. Camera, server and browser run on this computer.

    python -m benchmarks.video [--minutes 10]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.parts.timed_camera import BITS, HEIGHT, RATE, WIDTH
from tests.support.machine.running import Server, run_server
from tests.support.media.rtsp_server import rtsp_server

MAX_LATE = 0.01
"""Share of frames that may be late."""
LATE = 2 / RATE
"""Seconds after the previous frame from which on a frame counts as late."""
MAX_RATIO = 1.3
"""Maximum processor time for four viewers, relative to the time for one viewer."""
WARM_UP = 20.0
"""Seconds until the memory is first measured. Short runs do not wait."""
SETTLING = 1.5
"""Seconds to wait after a change before the processor time is measured."""
PARTS = Path(__file__).parent / "parts"
BROWSER = Path(__file__).parents[1] / "tests" / "browser"
Load = dict[str, float]
"""The number of processor cores that each process uses."""
H264 = (f"openh264enc gop-size={RATE} bitrate=2000000", "rtph264pay config-interval=1")
PICTURE = (
    "videotestsrc is-live=true pattern=smpte horizontal-speed=4"
    f" ! video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={RATE}/1"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.35, help="duration of the video")
    arguments = parser.parse_args()
    if find_chromium() is None or not (BROWSER / "node_modules").exists():
        print("run `make system browser` to install the SDK and Chromium")
        return 0
    asyncio.run(measure(arguments.minutes * 60))
    return 0


async def measure(seconds: float) -> None:
    # In a short run, the comparisons are shorter.
    rounds, duration = (4, 15.0) if seconds >= 300 else (2, 4.0)
    async with run_camera() as port:
        timed = make_camera("timed", f"http://127.0.0.1:{port}/", {"format": "mpjpeg"})
        async with run_machine(timed) as server, open_browser(server.url) as browser:
            await measure_video(server, browser, seconds)
            await measure_viewers(server, browser, rounds, duration)
    try:
        async with rtsp_server(encoding=H264, picture=PICTURE) as camera:
            encoding = make_camera("encoding", camera.url)
            async with run_machine(encoding) as server, open_browser(server.url) as browser:
                await measure_passthrough(server, browser, rounds, duration)
    except pytest.skip.Exception as reason:
        print(reason)


class Browser:
    """The browser page that watches the video: benchmarks/parts/video.mjs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def read_reply(self) -> Any:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the browser ended; its error is above")
        return json.loads(line)

    async def run(self, command: str, argument: object = None) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, argument]).encode() + b"\n")
        return await self.read_reply()


async def measure_video(server: Server, browser: Browser, seconds: float) -> None:
    first = await browser.run("add", "timed")
    await browser.run("remove")
    again = await browser.run("add", "timed")
    print_line("first frame after AddStream", f"{first:.2f} s, {again:.2f} s for the next viewer")
    others, start = read_other_time(), time.monotonic()
    recording = asyncio.ensure_future(browser.run("record", seconds))
    await asyncio.sleep(min(WARM_UP, seconds / 2))
    memory = read_memory(server)
    found = await recording
    disturbance = (read_other_time() - others) / (time.monotonic() - start)
    print_frames(found, seconds)
    print_line("others on this computer", f"{disturbance:.1%} of a core")
    for name, after in read_memory(server).items():
        change = f"{memory[name]:.1f} -> {after:.1f} MiB ({after / memory[name] - 1:+.1%})"
        print_line(f"memory of the {name}", change)


def print_frames(found: Mapping[str, Any], seconds: float) -> None:
    times = found["times"]
    late = sum(1 for one, other in pairwise(times) if other - one > LATE * 1000)
    print_line(
        f"{found['size'][0]}x{found['size'][1]} {found['codec'].removeprefix('video/')}",
        f"{found['presented']} frames in {seconds:.0f} s, {count_missing(found['codes'])} missing, "
        f"{late / max(len(times), 1):.2%} late (aim {MAX_LATE:.0%})",
    )
    print_line("bit rate received", f"{found['bitrate'] / 1000:.0f} kbit/s")
    delays = sorted(each for each in found["delays"] if each is not None)
    unreadable = len(times) - len(delays)
    print_line(
        "delay from drawing to display",
        f"{quantile(delays, 0.5)} ms, p95 {quantile(delays, 0.95)} ms, worst {delays[-1]} ms"
        + (f" ({unreadable} frames unreadable)" if unreadable else ""),
    )
    stats = found["stats"]
    buffered = stats["jitterBufferDelay"] / max(stats["jitterBufferEmittedCount"], 1)
    decoding = stats["totalDecodeTime"] / max(stats["framesDecoded"], 1)
    print_line(
        "  of that, in the browser",
        f"{buffered * 1e3:.0f} ms in its buffer, {decoding * 1e3:.0f} ms in its decoder (mean); "
        f"{stats.get('freezeCount', 0)} freezes, {stats['framesDropped']} frames dropped, "
        f"{stats['keyFramesDecoded']} key frames, {stats.get('pliCount', 0)} requested",
    )


def count_missing(codes: Sequence[int | None]) -> int:
    """Return the number of the camera's pictures that were not presented."""
    known = [each for each in codes if each is not None]
    elapsed = sum((other - one) % (1 << BITS) for one, other in pairwise(known))
    return round(elapsed * RATE / 1000) + 1 - len(set(known))


def quantile(values: Sequence[int], at: float) -> int:
    return values[int(at * (len(values) - 1))]


async def measure_viewers(server: Server, browser: Browser, rounds: int, duration: float) -> None:
    """Compare one viewer with four, alternately. One viewer is already connected."""
    used: dict[int, list[Load]] = {1: [], 4: []}
    for _ in range(rounds):
        used[1].append(await measure_processor(server, duration))
        for _ in range(3):
            await browser.run("add", "timed")
        used[4].append(await measure_processor(server, duration))
        for _ in range(3):
            await browser.run("remove")
    for viewers, loads in used.items():
        print_line(f"processor, {viewers} viewer{'s' if viewers > 1 else ''}", format_load(loads))
    ratio = total_load(used[4]) / total_load(used[1])
    print_line("  ratio", f"{ratio:.2f} (aim {MAX_RATIO})")


async def measure_passthrough(
    server: Server, browser: Browser, rounds: int, duration: float
) -> None:
    """Compare the camera's own encoding with encoding the same pictures again, alternately."""
    used: dict[str, list[Load]] = {"not watched": [], "as encoded": [], "encoded again": []}
    used["not watched"].append(await measure_processor(server, duration))
    await browser.run("add", "encoding")
    encoded_anyway = 0
    for _ in range(rounds):
        before = count_encoders(server)
        used["as encoded"].append(await measure_processor(server, duration))
        encoded_anyway += count_encoders(server) - before
        # The server encodes for any requested size, even for the camera's own size.
        await browser.run("resize", [WIDTH, HEIGHT])
        used["encoded again"].append(await measure_processor(server, duration))
        await browser.run("resize")
    assert count_encoders(server) >= rounds
    sent = "forwarding the encoded video of camera encoding"
    assert server.output.count(sent) >= rounds + 1
    for name, loads in used.items():
        print_line(f"RTSP camera, {name}", format_load(loads))
    ratio = total_load(used["as encoded"]) / total_load(used["encoded again"])
    note = f"; {encoded_anyway} times it was encoded again" if encoded_anyway else ""
    print_line("  as encoded / encoded again", f"{ratio:.2f}{note}")


def count_encoders(server: Server) -> int:
    """Return the number of times that the server has started to encode the video of the RTSP
    camera."""
    return server.output.count("encoding camera encoding as H264")


async def measure_processor(server: Server, duration: float) -> Load:
    """Return the number of cores that the server and its WebRTC process use."""
    await asyncio.sleep(SETTLING)
    before, start = read_processor_time(server), time.monotonic()
    await asyncio.sleep(duration)
    took = time.monotonic() - start
    return {name: (now - before[name]) / took for name, now in read_processor_time(server).items()}


def read_processor_time(server: Server) -> dict[str, float]:
    times = {name: each.cpu_times() for name, each in find_processes(server).items()}
    return {name: each.user + each.system for name, each in times.items()}


def read_other_time() -> float:
    """Return the processor time of other programs and other virtual machines, in seconds."""
    system = psutil.cpu_times()
    ours = [each.cpu_times() for each in psutil.Process().children(recursive=True)]
    return sum(system) - system.idle - system.iowait - sum(each.user + each.system for each in ours)


def total_load(loads: Sequence[Load]) -> float:
    return statistics.median(sum(each.values()) for each in loads)


def format_load(loads: Sequence[Load]) -> str:
    parts = {name: statistics.median(each[name] for each in loads) for name in loads[0]}
    listed = " + ".join(f"{name} {load:.1%}" for name, load in parts.items())
    return f"{total_load(loads):.1%} of a core ({listed})"


def read_memory(server: Server) -> dict[str, float]:
    return {
        name: each.memory_info().rss / (1 << 20) for name, each in find_processes(server).items()
    }


def find_processes(server: Server) -> dict[str, psutil.Process]:
    main = psutil.Process(server.pid)
    found = {"server": main}
    for child in main.children():
        if "cogwork.webrtc.main" in child.cmdline():
            found["WebRTC process"] = child
    return found


def print_line(name: str, value: str) -> None:
    print(f"{name:30} {value}", flush=True)


def find_chromium() -> str | None:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    return found or shutil.which("chromium-browser")


def make_camera(name: str, url: str, options: Mapping[str, str] | None = None) -> dict[str, Any]:
    attributes = {"video_path": url, "input_kw_args": dict(options or {})}
    api = "rdk:component:camera"
    return {"name": name, "api": api, "model": "ffmpeg", "attributes": attributes}


@contextlib.asynccontextmanager
async def run_machine(camera: Mapping[str, Any]) -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory() as directory:
        config = {"components": [camera]}
        async with run_server(
            config, Path(directory), arguments=["-debug", "-disable-mdns"]
        ) as server:
            await server.wait_for_status(state="running")
            yield server


@contextlib.asynccontextmanager
async def run_camera() -> AsyncIterator[int]:
    """Run the camera that draws the time, and yield its port."""
    command = (sys.executable, str(PARTS / "timed_camera.py"))
    async with run_process(*command) as process:
        assert process.stdout is not None
        yield int(await process.stdout.readline())


@contextlib.asynccontextmanager
async def open_browser(url: str) -> AsyncIterator[Browser]:
    async with run_process("node", str(PARTS / "video.mjs"), url) as process:
        browser = Browser(process)
        await browser.read_reply()
        yield browser


@contextlib.asynccontextmanager
async def run_process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process that ends when its standard input is closed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
        env={**os.environ, "CHROMIUM": find_chromium() or ""},
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    sys.exit(main())
