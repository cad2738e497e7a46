from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import run_others
from viam.components.camera.client import CameraClient
from viam.gen.component.camera.v1.camera_grpc import CameraServiceStub
from viam.gen.component.camera.v1.camera_pb2 import GetImagesRequest, GetImagesResponse

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.camera.attributes import FakeCameraAttributes
from cogwork.drivers.camera.fake import FakeCamera
from cogwork.drivers.camera.gradient import draw_gradient
from cogwork.graph.name import ResourceName
from cogwork.media.image import decode
from cogwork.media.image_header import DEPTH, JPEG, PCD, PNG, RGBA

NAME = ResourceName.parse("rdk:component:camera/c")
SMALL = {"width": 320, "height": 240}
BELT: dict[str, Any] = {**SMALL, "scene": "conveyor"}
Build = Callable[..., Awaitable[FakeCamera]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(5000.0)


@pytest.fixture
async def build(clock: ManualClock) -> AsyncIterator[Build]:
    built: list[FakeCamera] = []

    async def build(**attributes: Any) -> FakeCamera:
        parsed = FakeCameraAttributes.model_validate(attributes)
        built.append(await FakeCamera.new(NAME, parsed, {}, clock))
        return built[-1]

    yield build
    for camera in built:
        await camera.close()


class TestGradient:
    @pytest.mark.parametrize(("width", "height"), [(64, 48), (1, 1), (2, 300), (1280, 720)])
    def test_gradient_fills_the_image(self, width: int, height: int) -> None:
        pixels = draw_gradient(width, height, 0)
        assert (pixels.shape, pixels.dtype.name) == ((height, width, 3), "uint8")

    def test_hue_changes_horizontally_and_brightness_vertically(self) -> None:
        pixels = draw_gradient(360, 100, 0).astype(int)
        assert len(np.unique(pixels[50], axis=0)) > 100
        brightness = pixels.max(axis=2)
        assert (np.diff(brightness, axis=0) >= 0).all()
        assert brightness[0, 0] < 100
        assert brightness[-1, 0] == 255

    def test_steps_shift_the_gradient_periodically(self) -> None:
        assert not np.array_equal(draw_gradient(64, 48, 0), draw_gradient(64, 48, 1))
        assert np.array_equal(draw_gradient(64, 48, 3), draw_gradient(64, 48, 93))
        assert np.array_equal(draw_gradient(64, 48, 10**12), draw_gradient(64, 48, 10**12))


class TestStillImages:
    async def test_default_image_is_the_gradient(self, build: Build, serve: Serve) -> None:
        async with serve(await build()) as channel:
            (image,), _ = await CameraClient("c", channel).get_images(extra={"mime_type": PNG})
        assert (image.name, image.mime_type) == ("", PNG)
        assert np.array_equal(decode(image.data), draw_gradient(1280, 720, 0))

    @pytest.mark.parametrize("mime_type", [JPEG, PNG, RGBA])
    async def test_image_is_encoded_as_requested(
        self, build: Build, serve: Serve, mime_type: str
    ) -> None:
        async with serve(await build(**SMALL)) as channel:
            (image,), _ = await CameraClient("c", channel).get_images(
                extra={"mime_type": mime_type}
            )
        assert (image.mime_type, image.width, image.height) == (mime_type, 320, 240)

    async def test_image_stays_the_same_while_its_timestamp_advances(
        self, build: Build, serve: Serve, clock: ManualClock
    ) -> None:
        camera = await build(**SMALL)
        async with serve(camera) as channel:
            client = CameraClient("c", channel)
            (first,), metadata = await client.get_images()
            assert metadata.captured_at.ToMilliseconds() == 5_000_000
            await clock.advance(2.5)
            (second,), metadata = await client.get_images()
            assert metadata.captured_at.ToMilliseconds() == 5_002_500
        assert first.data == second.data
        (one,), (other,) = await asyncio.gather(camera.frames(), camera.frames())
        assert one.pixels is other.pixels

    async def test_properties_without_depth(self, build: Build, serve: Serve) -> None:
        async with serve(await build(**SMALL)) as channel:
            client = CameraClient("c", channel)
            properties = await client.get_properties()
            assert not properties.supports_pcd
            assert not properties.HasField("frame_rate")
            assert list(properties.mime_types) == [JPEG, PNG, RGBA]
            assert properties.intrinsic_parameters.width_px == 320
            with refused() as told:
                await client.get_point_cloud()
            assert told.status == Status.UNIMPLEMENTED

    async def test_only_source_has_an_empty_name(self, build: Build, serve: Serve) -> None:
        async with serve(await build(**SMALL)) as channel:
            client = CameraClient("c", channel)
            assert len((await client.get_images(filter_source_names=[""]))[0]) == 1
            with refused() as told:
                await client.get_images(filter_source_names=["color"])
        assert told.status == Status.INVALID_ARGUMENT
        assert told.words == 'invalid source name: color; this camera has ""'


class TestAnimation:
    async def test_frame_changes_with_the_frame_rate(
        self, build: Build, serve: Serve, clock: ManualClock
    ) -> None:
        async with serve(await build(**SMALL, animated=True, frame_rate=10)) as channel:
            client = CameraClient("c", channel)
            assert (await client.get_properties()).frame_rate == 10
            for seconds, step in ((0.0, 0), (0.05, 0), (0.06, 1), (0.9, 10)):
                await clock.advance(seconds)
                (image,), metadata = await client.get_images(extra={"mime_type": PNG})
                assert np.array_equal(decode(image.data), draw_gradient(320, 240, step))
                assert metadata.captured_at.ToMilliseconds() == 5_000_000 + 100 * step

    async def test_concurrent_readers_share_one_image(
        self, build: Build, clock: ManualClock
    ) -> None:
        camera = await build(**SMALL, animated=True)
        for _ in range(3):
            await clock.advance(1)
            seen = await asyncio.gather(*(camera.frames() for _ in range(10)))
            assert len({id(frame.image) for (frame,) in seen}) == 1

    async def test_cameras_with_the_same_seed_show_the_same_frames(
        self, build: Build, clock: ManualClock
    ) -> None:
        one, other = await build(**BELT, seed=7), await build(**BELT, seed=7)
        another = await build(**BELT, seed=8)
        for _ in range(2):
            await clock.advance(1.3)
            first, second, third = [await each.frames() for each in (one, other, another)]
            for left, right in zip(first, second, strict=True):
                assert np.array_equal(left.pixels, right.pixels)
            assert not np.array_equal(first[0].pixels, third[0].pixels)

    async def test_conveyor_scene_changes_with_time(self, build: Build, clock: ManualClock) -> None:
        camera = await build(**BELT)
        (before,) = await camera.frames(["color"])
        await clock.advance(0.5)
        (after,) = await camera.frames(["color"])
        assert not np.array_equal(before.pixels, after.pixels)
        assert after.captured_at > before.captured_at


class TestConveyorScene:
    async def test_color_and_depth_sources_can_be_filtered(
        self, build: Build, serve: Serve
    ) -> None:
        async with serve(await build(**BELT)) as channel:
            client = CameraClient("c", channel)
            images, _ = await client.get_images()
            assert [(i.name, i.mime_type) for i in images] == [("color", JPEG), ("depth", DEPTH)]
            assert len(images[1].bytes_to_depth_array()) == 240
            (image,), _ = await client.get_images(filter_source_names=["depth"])
            assert image.data == images[1].data
            images, _ = await client.get_images(filter_source_names=["depth", "color"])
            assert [image.name for image in images] == ["depth", "color"]
            with refused() as told:
                await client.get_images(filter_source_names=["color", "infrared"])
            assert told.words == ('invalid source name: infrared; this camera has "color", "depth"')
            with refused() as told:
                await client.get_images(filter_source_names=["color", "color"])
            assert told.words == "duplicate source name in filter: color"

    async def test_properties_and_point_cloud(self, build: Build, serve: Serve) -> None:
        async with serve(await build(**BELT, frame_rate=5)) as channel:
            client = CameraClient("c", channel)
            properties = await client.get_properties()
            assert (properties.supports_pcd, properties.frame_rate) == (True, 5)
            assert list(properties.mime_types) == [JPEG, PNG, RGBA, DEPTH]
            cloud, mime_type = await client.get_point_cloud()
        assert mime_type == PCD
        assert b"FIELDS x y z rgb\n" in cloud

    async def test_ground_truth_annotates_images(
        self, build: Build, serve: Serve, clock: ManualClock
    ) -> None:
        await clock.advance(3)
        async with serve(await build(**BELT, ground_truth=True)) as channel:
            labels = set()
            for _ in range(10):
                await clock.advance(1)
                for image in (await call_get_images(channel)).images:
                    for box in image.annotations.bboxes:
                        labels.add(box.label)
                        assert 0 <= box.x_min_normalized < box.x_max_normalized <= 1
                        assert 0 <= box.y_min_normalized < box.y_max_normalized <= 1
                        assert not box.HasField("confidence")
        assert labels
        assert labels <= {"gear", "bolt", "nut"}

    async def test_images_have_no_ground_truth_by_default(self, build: Build, serve: Serve) -> None:
        async with serve(await build(**BELT)) as channel:
            for image in (await call_get_images(channel)).images:
                assert not image.HasField("annotations")

    async def test_ground_truth_boxes_contain_parts(self, build: Build, clock: ManualClock) -> None:
        """Parts lie on the belt: inside a box, something is nearer than around it."""
        camera = await build(**BELT, ground_truth=True)
        met = 0
        for _ in range(10):
            await clock.advance(1)
            (depth,) = await camera.frames(["depth"])
            for mark in depth.annotations:
                left, right = int(mark.x_min * 320), int(np.ceil(mark.x_max * 320))
                top, bottom = int(mark.y_min * 240), int(np.ceil(mark.y_max * 240))
                inside = depth.pixels[top:bottom, left:right]
                assert inside.min() < np.median(depth.pixels)
                met += 1
        assert met


async def call_get_images(channel: Any) -> GetImagesResponse:
    """Call GetImages by the stub: the SDK's client drops annotations."""
    reply: GetImagesResponse = await CameraServiceStub(channel).GetImages(
        GetImagesRequest(name="c"), timeout=10
    )
    return reply


async def test_close_interrupts_waiting_readers(build: Build) -> None:
    camera = await build(width=640, height=480, scene="conveyor")
    asked = [asyncio.ensure_future(camera.frames()) for _ in range(5)]
    await run_others()
    await camera.close()
    done, waiting = await asyncio.wait(asked, timeout=5)
    assert not waiting
    assert {type(each.exception()) for each in done} == {Interrupted}
    with pytest.raises(Interrupted):
        await camera.frames()


@pytest.mark.parametrize(
    "wrong", [{"width": 321}, {"height": -2}, {"seed": -1}, {"frame_rate": -1}]
)
def test_invalid_attributes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FakeCameraAttributes.model_validate(wrong)
