from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.media.pictures import color_image, depth_image, encode_pixels, png
from viam.components.camera.client import CameraClient
from viam.media.video import CameraMimeType

from cogwork.core.clock import ManualClock
from cogwork.drivers.camera.attributes import ImageFileAttributes
from cogwork.drivers.camera.image_file import BadFile, ImageFileCamera
from cogwork.graph.name import ResourceName
from cogwork.media.image import decode, encode
from cogwork.media.image_header import DEPTH, JPEG, PCD, PNG, RGBA
from cogwork.resource.point_cloud import Intrinsics, depth_to_pcd

NAME = ResourceName.parse("rdk:component:camera/c")
LENS = {"width_px": 96, "height_px": 64, "fx": 80, "fy": 90, "ppx": 47.5, "ppy": 31.5}
Build = Callable[..., Awaitable[ImageFileCamera]]


@pytest.fixture
async def build(tmp_path: Path) -> AsyncIterator[Build]:
    """Return a function that writes given bytes to files and builds the camera."""
    built: list[ImageFileCamera] = []

    async def build(clock: ManualClock | None = None, **attributes: Any) -> ImageFileCamera:
        given = {}
        for key, value in attributes.items():
            given[key] = value
            if isinstance(value, bytes):
                (tmp_path / key).write_bytes(value)
                given[key] = str(tmp_path / key)
        parsed = ImageFileAttributes.model_validate(given)
        built.append(await ImageFileCamera.new(NAME, parsed, {}, clock))
        return built[-1]

    yield build
    for camera in built:
        await camera.close()


@pytest.fixture
async def color_and_depth_camera(build: Build) -> ImageFileCamera:
    return await build(
        ManualClock(1234.5),
        color_image_file_path=encode_pixels(".jpg", color_image()),
        depth_image_file_path=encode_pixels(".png", depth_image()),
        intrinsic_parameters=LENS,
        distortion_parameters={"rk1": 0.5, "tp2": -0.25},
    )


async def test_jpeg_file_is_returned_unchanged(build: Build, serve: Serve) -> None:
    data = encode_pixels(".jpg", color_image())
    async with serve(await build(color_image_file_path=data)) as channel:
        (image,), _ = await CameraClient("c", channel).get_images()
        assert (image.name, image.mime_type, image.data) == ("color", JPEG, data)
        assert (image.width, image.height) == (96, 64)


async def test_png_file_is_converted_to_jpeg_unless_png_is_requested(
    build: Build, serve: Serve
) -> None:
    data = png(8, 6)
    async with serve(await build(color_image_file_path=data)) as channel:
        client = CameraClient("c", channel)
        (image,), _ = await client.get_images()
        assert image.mime_type == JPEG
        assert decode(image.data).shape == (6, 8, 3)
        (image,), _ = await client.get_images(extra={"mime_type": PNG})
        assert (image.mime_type, image.data) == (PNG, data)


async def test_depth_file_is_returned_as_raw_depth_or_png(build: Build, serve: Serve) -> None:
    for data in (encode_pixels(".png", depth_image()), encode(depth_image(), DEPTH)):
        async with serve(await build(depth_image_file_path=data)) as channel:
            client = CameraClient("c", channel)
            (image,), _ = await client.get_images()
            assert (image.name, image.mime_type) == ("depth", CameraMimeType.VIAM_RAW_DEPTH)
            assert image.bytes_to_depth_array() == depth_image().tolist()
            (image,), _ = await client.get_images(extra={"mime_type": PNG})
            assert np.array_equal(decode(image.data), depth_image())


class TestSources:
    async def test_sources_can_be_filtered_and_ordered(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            client = CameraClient("c", channel)
            for wanted, expected in (
                (None, ["color", "depth"]),
                ([], ["color", "depth"]),
                (["depth"], ["depth"]),
                (["depth", "color"], ["depth", "color"]),
            ):
                images, _ = await client.get_images(filter_source_names=wanted)
                assert [image.name for image in images] == expected

    @pytest.mark.parametrize(
        ("wanted", "words"),
        [
            (["x"], 'invalid source name: x; this camera has "color", "depth"'),
            (["color", ""], "invalid source name: ;"),
            (["color", "color"], "duplicate source name in filter: color"),
            ([f"{number}" for number in range(1001)], "the filter has 1001 source names"),
        ],
    )
    async def test_unknown_and_duplicate_sources_are_refused(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve, wanted: list[str], words: str
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            with refused() as told:
                await CameraClient("c", channel).get_images(filter_source_names=wanted)
        assert told.status == Status.INVALID_ARGUMENT
        assert words in told.words

    async def test_very_long_filter_is_refused_quickly(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve
    ) -> None:
        began = time.monotonic()
        async with serve(color_and_depth_camera) as channel:
            with refused():
                names = [f"{number:x}" for number in range(200_000)]
                await CameraClient("c", channel).get_images(filter_source_names=names)
        assert time.monotonic() - began < 5

    async def test_camera_with_only_a_point_cloud_has_no_images(
        self, build: Build, serve: Serve
    ) -> None:
        cloud = depth_to_pcd(depth_image(), Intrinsics(96, 64, 1, 1, 0, 0))
        async with serve(await build(pointcloud_file_path=cloud)) as channel:
            client = CameraClient("c", channel)
            assert (await client.get_images())[0] == []
            with refused() as told:
                await client.get_images(filter_source_names=["color"])
            assert told.words == "invalid source name: color; this camera has none"


class TestMimeTypes:
    @pytest.mark.parametrize(
        ("wanted", "color", "depth"),
        [
            (PNG, PNG, PNG),
            (f"{PNG}+lazy", PNG, PNG),
            ("", JPEG, DEPTH),
            (None, JPEG, DEPTH),
        ],
    )
    async def test_requested_mime_type_is_used(
        self,
        color_and_depth_camera: ImageFileCamera,
        serve: Serve,
        wanted: str | None,
        color: str,
        depth: str,
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            images, _ = await CameraClient("c", channel).get_images(extra={"mime_type": wanted})
            assert [image.mime_type for image in images] == [color, depth]

    @pytest.mark.parametrize("wanted", [JPEG, PNG, RGBA])
    async def test_color_is_decoded_identically_in_every_type(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve, wanted: str
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            (image,), _ = await CameraClient("c", channel).get_images(
                filter_source_names=["color"], extra={"mime_type": wanted}
            )
        assert np.array_equal(
            decode(image.data), (await color_and_depth_camera.frames(["color"]))[0].pixels
        )

    @pytest.mark.parametrize(
        ("wanted", "words"),
        [
            (
                "image/webp",
                'a color image cannot be encoded as "image/webp"; request image/jpeg',
            ),
            (
                JPEG,
                'a depth image cannot be encoded as "image/jpeg"; request image/vnd.viam.dep',
            ),
            (5, '"mime_type" in extra must be a string'),
            ("x" * 200_000, 'a color image cannot be encoded as "xxx'),
        ],
    )
    async def test_unsupported_mime_types_are_refused(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve, wanted: Any, words: str
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            with refused() as told:
                await CameraClient("c", channel).get_images(extra={"mime_type": wanted})
        assert told.status == Status.INVALID_ARGUMENT
        assert words in told.words
        assert len(told.words) < 5000

    async def test_image_larger_than_a_reply_is_refused(self, build: Build, serve: Serve) -> None:
        async with serve(await build(color_image_file_path=png(3000, 3000))) as channel:
            client = CameraClient("c", channel)
            with refused() as told:
                await client.get_images(extra={"mime_type": RGBA})
            assert told.status == Status.RESOURCE_EXHAUSTED
            assert "takes 36000012 bytes, but a reply holds at most 33554432" in told.words
            assert (await client.get_images())[0]


async def test_timestamp_is_the_time_of_the_request(
    color_and_depth_camera: ImageFileCamera, serve: Serve
) -> None:
    async with serve(color_and_depth_camera) as channel:
        client = CameraClient("c", channel)
        _, metadata = await client.get_images()
        assert metadata.captured_at.ToMilliseconds() == 1_234_500
        clock = color_and_depth_camera._clock
        assert isinstance(clock, ManualClock)
        await clock.advance(10)
        _, metadata = await client.get_images()
        assert metadata.captured_at.ToMilliseconds() == 1_244_500


class TestProperties:
    async def test_properties_with_depth_and_intrinsics(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            properties = await CameraClient("c", channel).get_properties()
        assert properties.supports_pcd
        lens, bend = properties.intrinsic_parameters, properties.distortion_parameters
        assert (lens.width_px, lens.height_px, lens.focal_x_px) == (96, 64, 80)
        assert (lens.focal_y_px, lens.center_x_px, lens.center_y_px) == (90, 47.5, 31.5)
        assert (bend.model, list(bend.parameters)) == ("brown_conrady", [0.5, 0, 0, 0, -0.25])
        assert list(properties.mime_types) == [JPEG, PNG, RGBA, DEPTH]
        assert not properties.HasField("frame_rate")

    async def test_properties_of_a_color_only_camera(self, build: Build, serve: Serve) -> None:
        async with serve(await build(color_image_file_path=png(8, 6))) as channel:
            client = CameraClient("c", channel)
            properties = await client.get_properties()
            assert not properties.supports_pcd
            assert not properties.HasField("intrinsic_parameters")
            assert list(properties.mime_types) == [JPEG, PNG, RGBA]
            assert await client.get_status() == {}
            assert await client.get_geometries() == []
            with refused() as told:
                await client.do_command({"a": 1})
            assert told.status == Status.UNIMPLEMENTED


class TestPointClouds:
    async def test_cloud_combines_depth_and_color(
        self, color_and_depth_camera: ImageFileCamera, serve: Serve
    ) -> None:
        async with serve(color_and_depth_camera) as channel:
            cloud, mime_type = await CameraClient("c", channel).get_point_cloud()
        assert mime_type == PCD
        (frame,) = await color_and_depth_camera.frames(["color"])
        lens = Intrinsics(96, 64, 80, 90, 47.5, 31.5)
        assert cloud == depth_to_pcd(depth_image(), lens, frame.pixels)

    async def test_cloud_has_no_color_when_the_sizes_differ(
        self, build: Build, serve: Serve
    ) -> None:
        camera = await build(
            color_image_file_path=png(8, 6),
            depth_image_file_path=encode_pixels(".png", depth_image()),
            intrinsic_parameters=LENS,
        )
        async with serve(camera) as channel:
            cloud, _ = await CameraClient("c", channel).get_point_cloud()
        assert cloud == depth_to_pcd(depth_image(), Intrinsics(96, 64, 80, 90, 47.5, 31.5))

    async def test_cloud_is_read_from_a_file(self, build: Build, serve: Serve) -> None:
        cloud = depth_to_pcd(depth_image(), Intrinsics(96, 64, 1, 1, 0, 0))
        camera = await build(pointcloud_file_path=cloud, color_image_file_path=png(8, 6))
        async with serve(camera) as channel:
            client = CameraClient("c", channel)
            assert await client.get_point_cloud() == (cloud, PCD)
            assert (await client.get_properties()).supports_pcd

    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            ({"color_image_file_path": png(8, 6)}, "it does not provide depth"),
            (
                {"depth_image_file_path": png(8, 6, 16, 0)},
                '"intrinsic_parameters" is missing in its configuration',
            ),
            (
                {"depth_image_file_path": png(8, 6, 16, 0), "intrinsic_parameters": LENS},
                'its "intrinsic_parameters" are for 96x64, but its depth is 8x6',
            ),
        ],
    )
    async def test_missing_requirements_are_named(
        self, build: Build, serve: Serve, attributes: dict[str, Any], words: str
    ) -> None:
        async with serve(await build(**attributes)) as channel:
            client = CameraClient("c", channel)
            with refused() as told:
                await client.get_point_cloud()
            assert told.status == Status.UNIMPLEMENTED
            assert told.words == f'camera "c" has no point clouds: {words}'


class TestBadFiles:
    @pytest.mark.parametrize(
        ("key", "data", "words"),
        [
            ("color", b"", "is not a usable image: the image is empty: it has no data"),
            ("color", b"GIF89a", "is not a usable image: the image appears to be a GIF"),
            ("color", png(8, 6)[:-5], "is not a usable image: the image is truncated"),
            ("color", png(20_000, 20_000), "is not a usable image: the image is too large"),
            ("color", png(8, 6, 16, 0), 'is a depth image, but is set as "color_image_file_path"'),
            ("depth", png(8, 6), "is not a depth image, such as a 16-bit PNG"),
            (
                "depth",
                encode_pixels(".jpg", color_image()),
                "is not a depth image, such as a 16-bit PNG",
            ),
        ],
    )
    async def test_unusable_image_file_is_named_with_the_reason(
        self, build: Build, tmp_path: Path, key: str, data: bytes, words: str
    ) -> None:
        attribute = f"{key}_image_file_path"
        with pytest.raises(BadFile) as error:
            await build(**{attribute: data})
        assert str(error.value).startswith(f"{tmp_path / attribute} {words}")

    async def test_file_that_is_not_a_point_cloud_is_refused(self, build: Build) -> None:
        with pytest.raises(BadFile, match="is not a point cloud: it has no PCD header"):
            await build(pointcloud_file_path=png(8, 6))

    @pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
    async def test_missing_and_irregular_files_are_refused(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / kind
        if kind == "directory":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        # A file may vanish or be replaced after the configuration was read.
        attributes = ImageFileAttributes.model_construct(
            color_image_file_path=str(path), depth_image_file_path=None, pointcloud_file_path=None
        )
        with pytest.raises(BadFile) as error:
            await ImageFileCamera.new(NAME, attributes, {})
        words = "cannot be read: No such file" if kind == "missing" else "is not a regular file"
        assert f"{path} {words}" in str(error.value)

    def test_camera_without_any_file_is_refused(self) -> None:
        with pytest.raises(ValidationError):
            ImageFileAttributes.model_validate({})


async def test_frame_can_be_encoded_after_close(build: Build) -> None:
    """A call in progress during close still gets its image if no work is left."""
    camera = await build(color_image_file_path=encode_pixels(".jpg", color_image()))
    (frame,) = await camera.frames()
    await camera.close()
    assert await frame.encode(JPEG) == encode_pixels(".jpg", color_image())
