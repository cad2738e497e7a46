"""A real RTSP server on loopback that can be cut off, hang and recover."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.machine.running import DEADLINE, Output
from tests.support.waiting import run_others

JPEG = ("jpegenc", "rtpjpegpay")
H264 = ("openh264enc gop-size=15", "rtph264pay config-interval=1")

_PYTHON = "/usr/bin/python3"
_SCRIPT = str(Path(__file__).with_name("gst_rtsp.py"))
_PACKAGES = (
    "gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good python3-gi"
)


class RtspServer:
    def __init__(self, port: int, elements: tuple[str, ...]) -> None:
        self.port = port
        self._elements = elements
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/test"

    async def start(self) -> float:
        """Start it and return the monotonic time at which it listens."""
        self._process = await asyncio.create_subprocess_exec(
            _PYTHON,
            _SCRIPT,
            str(self.port),
            *self._elements,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert self._process.stdout is not None
        output = Output()
        reading = output.follow(self._process.stdout)
        self._reader = asyncio.get_running_loop().create_task(reading)
        await output.wait_for("^listening$")
        return time.monotonic()

    async def cut(self) -> None:
        """Kill it, as if unplugged, except that the kernel closes its connections."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await asyncio.wait_for(self._process.wait(), DEADLINE)
        if self._reader is not None:
            await asyncio.wait_for(self._reader, DEADLINE)
        # Its transport closes its pipes one iteration of the loop later.
        await run_others()
        self._process = None

    def hang(self) -> None:
        """Suspend it: its connections stay, but send nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextlib.asynccontextmanager
async def rtsp_server(
    port: int | None = None, encoding: tuple[str, ...] = JPEG, picture: str | None = None
) -> AsyncIterator[RtspServer]:
    """Yield the listening server; skip the test where GStreamer is not installed.

    `picture`: the GStreamer elements that make the image, instead of a small moving ball.
    """
    if not _has_gstreamer():
        pytest.skip(f"there is no RTSP server to test with: apt-get install {_PACKAGES}")
    elements = encoding if picture is None else ("--picture", picture, *encoding)
    server = RtspServer(port or free_port(), elements)
    try:
        await server.start()
        yield server
    finally:
        await server.cut()


def free_port() -> int:
    """Below those that the kernel gives to clients: one that is given away while nobody listens
    might end up connected to itself."""
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@functools.cache
def _has_gstreamer() -> bool:
    try:
        found = subprocess.run(
            [_PYTHON, _SCRIPT], capture_output=True, timeout=DEADLINE, check=False
        )
    except FileNotFoundError:
        return False
    return found.returncode == 0
