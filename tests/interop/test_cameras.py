"""The SDK's own camera client, unmodified, with every camera model of a real server."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import cv2
import grpc.aio
import numpy as np
from grpclib.client import Channel
from grpclib.const import Status
from numpy.typing import NDArray
from tests.support.machine.running import run_server
from tests.support.machine.served import refused
from tests.support.media.films import film
from tests.support.media.pictures import color_image, depth_image, encode_pixels

from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.gen.component.camera.v1 import camera_pb2 as camera  # noqa: E402

WIDTH, HEIGHT = 320, 240
SEED = 5


def component(name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:camera",
        "model": model,
        "attributes": attributes,
    }


def camera_config(directory: Path) -> dict[str, Any]:
    photo, depth = directory / "photo.jpg", directory / "depth.png"
    photo.write_bytes(encode_pixels(".jpg", color_image()))
    depth.write_bytes(encode_pixels(".png", depth_image()))
    size = {"width": WIDTH, "height": HEIGHT}
    turn = {"type": "rotate", "attributes": {"angle_degs": 90}}
    return {
        "components": [
            component("colours", "fake", **size),
            component("belt", "fake", scene="conveyor", seed=SEED, ground_truth=True, **size),
            component(
                "files",
                "image_file",
                color_image_file_path=str(photo),
                depth_image_file_path=str(depth),
            ),
            component("film", "ffmpeg", video_path=str(film(directory / "film.mp4"))),
            component("turned", "transform", source="belt", pipeline=[turn]),
            component("plugged", "webcam", video_path="/dev/video-none"),
        ],
        "network": {"bind_address": "localhost:0"},
    }


@contextlib.asynccontextmanager
async def serve_cameras(tmp_path: Path) -> AsyncIterator[tuple[Channel, int]]:
    async with run_server(camera_config(tmp_path), tmp_path) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        try:
            yield channel, server.port
        finally:
            channel.close()


async def test_every_camera_model_serves_the_sdk_client(tmp_path: Path) -> None:
    async with serve_cameras(tmp_path) as (channel, _):
        shapes = {
            "colours": [("", "image/jpeg", (HEIGHT, WIDTH, 3))],
            "belt": [
                ("color", "image/jpeg", (HEIGHT, WIDTH, 3)),
                ("depth", "image/vnd.viam.dep", (HEIGHT, WIDTH)),
            ],
            "files": [
                ("color", "image/jpeg", (64, 96, 3)),
                ("depth", "image/vnd.viam.dep", (64, 96)),
            ],
            "film": [("", "image/jpeg", (48, 64, 3))],
            "turned": [
                ("color", "image/jpeg", (WIDTH, HEIGHT, 3)),
                ("depth", "image/vnd.viam.dep", (WIDTH, HEIGHT)),
            ],
        }
        for name, wanted in shapes.items():
            images, metadata = await CameraClient(name, channel).get_images()
            seen = [(each.name, str(each.mime_type), _pixels(each.data).shape) for each in images]
            assert seen == wanted
            assert metadata.captured_at.seconds > 0
            assert await CameraClient(name, channel).get_geometries() == []
        with refused() as told:
            await CameraClient("plugged", channel).get_images()
        assert told.status is Status.UNAVAILABLE
        assert "camera" in told.words


async def test_depth_and_point_cloud_match_the_conveyor(tmp_path: Path) -> None:
    belt = Conveyor(SEED, WIDTH, HEIGHT)
    async with serve_cameras(tmp_path) as (channel, port):
        properties = await CameraClient("belt", channel).get_properties()
        assert properties.supports_pcd
        lens = properties.intrinsic_parameters
        assert (lens.width_px, lens.focal_x_px) == (WIDTH, belt.intrinsics.focal_x)
        reply = await _get_images(port, "belt")
        depth = _pixels(reply.images[1].image)
        marks = reply.images[0].annotations.bboxes
        assert marks
        for mark in marks:
            inside = depth[
                round(mark.y_min_normalized * HEIGHT) : round(mark.y_max_normalized * HEIGHT),
                round(mark.x_min_normalized * WIDTH) : round(mark.x_max_normalized * WIDTH),
            ]
            assert mark.label in ("gear", "bolt", "nut")
            assert inside.min() < belt.belt_distance_mm
            # The box is tight: the part reaches each of its edges.
            rows, columns = np.nonzero(inside < belt.belt_distance_mm)
            assert (rows.min(), columns.min()) == (0, 0)
            assert (rows.max() + 1, columns.max() + 1) == inside.shape
        cloud, _ = await CameraClient("belt", channel).get_point_cloud()
        points = _points(cloud)
        assert len(points) == WIDTH * HEIGHT
        assert np.isclose(points[:, 2].max(), belt.belt_distance_mm / 1000)
        # A pixel and its point lie on one line through the lens.
        across = points[:, 0] / points[:, 2] * lens.focal_x_px + lens.center_x_px
        down = points[:, 1] / points[:, 2] * lens.focal_y_px + lens.center_y_px
        assert np.allclose(across, np.tile(np.arange(WIDTH), HEIGHT), atol=0.01)
        assert np.allclose(down, np.repeat(np.arange(HEIGHT), WIDTH), atol=0.01)


async def _get_images(port: int, name: str) -> camera.GetImagesResponse:
    """Call GetImages by gRPC: the SDK's client drops annotations."""
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        call: Any = channel.unary_unary(
            "/viam.component.camera.v1.CameraService/GetImages",
            request_serializer=camera.GetImagesRequest.SerializeToString,
            response_deserializer=camera.GetImagesResponse.FromString,
        )
        reply: camera.GetImagesResponse = await call(camera.GetImagesRequest(name=name), timeout=60)
        return reply


def _pixels(data: bytes) -> NDArray[Any]:
    if data.startswith(b"DEPTHMAP"):
        width, height = struct.unpack(">8xQQ", data[:24])
        return np.frombuffer(data, ">u2", offset=24).reshape(height, width)
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    return pixels


def _points(cloud: bytes) -> NDArray[np.float32]:
    header, _, body = cloud.partition(b"DATA binary\n")
    fields = header.split(b"FIELDS ")[1].splitlines()[0].split()
    return np.frombuffer(body, "<f4").reshape(-1, len(fields))
