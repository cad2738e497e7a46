"""Cameras as video in a real browser, and for a client that knows only VP8."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from benchmarks.parts.webrtc_client import CallFailed
from tests.interop.test_typescript_sdk import fake, run_node
from tests.interop.video_client import VideoClient
from tests.support.machine.running import run_server
from tests.support.media.rtsp_server import H264, rtsp_server
from viam.gen.stream.v1.stream_pb2 import AddStreamRequest

from cogwork.cli.demo.run import DEMO_MODEL, build_config

DEMO = build_config(DEMO_MODEL / "conveyor.onnx", "onnx_cpu", "")
"""Has a camera "belt", and "boxes", which shows the same with detections."""
MACHINE = {
    "components": [
        *DEMO["components"],
        fake("wall", "component:camera", width=320, height=240),
    ],
    "services": DEMO["services"],
}
PICTURE = os.environ.get("COGWORK_VIDEO_PICTURE")
"""A file for the picture that the guide shows."""
ADD = "/proto.stream.v1.StreamService/AddStream"


async def test_browser_shows_cameras(tmp_path: Path) -> None:
    async with run_server(MACHINE, tmp_path) as server:
        await server.wait_for_status(state="running")
        picture = Path(PICTURE) if PICTURE else tmp_path / "page.jpg"
        shown = await run_node(
            "video.mjs", server.url, "3", "belt", "boxes", "--picture", str(picture)
        )
        found = await run_node("video.mjs", server.url, "3", "belt", "wall")
    print(shown, found)
    belt, wall = found["belt"], found["wall"]
    assert belt["size"] == [640, 480]
    assert belt["codec"] == "video/H264"
    assert belt["frames"] >= 3  # of 45; few on a busy computer
    assert belt["first frame"] < 30
    assert belt["sizes"][:2] == [[640, 480], [320, 240]]
    # The fake camera shows the colors of the rainbow.
    assert wall["size"] == [320, 240]
    (red, green, blue, _), (red2, green2, blue2, _) = wall["corners"]
    assert red > green > blue
    assert red2 > blue2 > green2
    assert found["left"] == 0
    # Tracks are used again, in the other order.
    assert found["again"] == [{"wall": [320, 240], "belt": [640, 480]}] * 3
    # A camera with detections is like any other.
    assert shown["boxes"]["size"] == [640, 480]
    assert shown["boxes"]["frames"] >= 3
    assert picture.stat().st_size > 1000


async def test_browser_shows_what_an_rtsp_camera_encodes(tmp_path: Path) -> None:
    async with rtsp_server(encoding=H264) as camera:
        gate = {
            "name": "gate",
            "api": "rdk:component:camera",
            "model": "ffmpeg",
            "attributes": {"video_path": camera.url},
        }
        async with run_server({"components": [gate]}, tmp_path, arguments=["-debug"]) as server:
            await server.out.wait_for("applied in")
            found = await run_node("video.mjs", server.url, "3", "gate")
            await server.out.wait_for("forwarding the encoded video of camera gate")
            assert "encoding camera gate" not in server.output
    print(found)
    assert found["gate"]["size"] == [320, 240]
    assert found["gate"]["codec"] == "video/H264"
    assert found["gate"]["frames"] >= 3
    assert found["again"] == [{"gate": [320, 240]}] * 3


async def test_client_that_knows_only_vp8_gets_it(tmp_path: Path) -> None:
    async with run_server(MACHINE, tmp_path) as server:
        await server.wait_for_status(state="running")
        client = VideoClient("VP8")
        try:
            async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
                await client.connect(channel, "machine")
                add: Any = channel.unary_unary(ADD)
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await add(AddStreamRequest(name="belt").SerializeToString())
                assert "only add a stream over a WebRTC" in (refusal.value.details() or "")
            await client.call(ADD, AddStreamRequest(name="belt").SerializeToString())
            with pytest.raises(CallFailed, match="already active"):
                await client.call(ADD, AddStreamRequest(name="belt").SerializeToString())
            with pytest.raises(CallFailed, match='unknown stream "roof"; choose one of'):
                await client.call(ADD, AddStreamRequest(name="roof").SerializeToString())
            async with asyncio.timeout(60):
                track = await client.tracks.get()
                frames = [await track.recv() for _ in range(5)]
            assert {(each.width, each.height) for each in frames} == {(640, 480)}
        finally:
            await client.close()
