from __future__ import annotations

import asyncio
import gc
import math
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import cv2
import numpy as np
import pytest
from grpclib.const import Status
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.machine.served import Serve, refused, served
from tests.support.media.foreign_camera import ForeignCamera
from tests.support.media.pictures import (
    BAD_PICTURES,
    color_image,
    depth_image,
    encode_pixels,
    jpeg,
    png,
)
from tests.support.sizes import limit
from tests.support.waiting import run_others
from viam.components.camera.client import CameraClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.camera.attributes import Optics, TransformAttributes
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.image_operations import crop, resize, rotate
from cogwork.drivers.camera.transform import TransformCamera
from cogwork.graph.name import ResourceName
from cogwork.media import image as image_module
from cogwork.media.image import Pixels, decode, encode
from cogwork.media.image_header import DEPTH, JPEG, MAX_PIXELS, PCD, PNG, RGBA, read_header
from cogwork.resource.frame import Annotation, Frame, Image
from cogwork.resource.point_cloud import Intrinsics, depth_to_pcd

API = "rdk:component:camera"
NAME = ResourceName.parse(f"{API}/c")
SOURCE = ResourceName.parse(f"{API}/source")
LENS = {"width_px": 64, "height_px": 96, "fx": 80, "fy": 90, "ppx": 31.5, "ppy": 47.5}


class StillCamera(FrameCamera):
    """A built-in camera that shows given pixels."""

    def __init__(self, clock: ManualClock, **pictures: Pixels) -> None:
        super().__init__(SOURCE, Optics(), sources=tuple(pictures))
        self._clock = clock
        self.pictures: dict[str, Image] = {}
        for source, pixels in pictures.items():
            self.show(source, pixels)

    def show(self, source: str, pixels: Pixels) -> None:
        self.pictures[source] = Image(pixels, self.workers)

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        self.check_sources(sources)
        marks = (Annotation("nut", 0.0, 0.0, 0.5, 0.5),)
        return [
            Frame(self.pictures[source], self._clock.time(), source, marks)
            for source in sources or self.sources
        ]


class Bench:
    """Builds cameras and closes them at the end."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000.0)
        self._cameras: list[FrameCamera] = []

    def still(self, **pictures: Pixels) -> StillCamera:
        camera = StillCamera(self.clock, **pictures)
        self._cameras.append(camera)
        return camera

    async def transform(
        self, source: Any, *steps: dict[str, Any], **optics: Any
    ) -> TransformCamera:
        given = {"source": "source", "pipeline": list(steps), **optics}
        attributes = TransformAttributes.model_validate(given)
        dependencies = {ResourceName.parse(f"{API}/other"): object(), SOURCE: source}
        camera = await TransformCamera.new(NAME, attributes, dependencies, self.clock)
        self._cameras.append(camera)
        return camera

    async def close(self) -> None:
        for camera in self._cameras:
            await camera.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.close()


def rotate_step(degrees: float | None = None) -> dict[str, Any]:
    return {"type": "rotate", "attributes": {} if degrees is None else {"angle_degs": degrees}}


def resize_step(width: int, height: int) -> dict[str, Any]:
    return {"type": "resize", "attributes": {"width_px": width, "height_px": height}}


def crop_step(*edges: float, overlay: bool = False) -> dict[str, Any]:
    keys = ("x_min_px", "y_min_px", "x_max_px", "y_max_px")
    edge = dict(zip(keys, edges, strict=True))
    return {"type": "crop", "attributes": {**edge, "overlay_crop_box": overlay}}


async def read_images(
    camera: TransformCamera, serve: Serve = served, **wanted: Any
) -> list[NDArray[Any]]:
    """Return the lossless images that a client gets."""
    async with serve(camera) as channel:
        client = CameraClient("c", channel)
        images, _ = await client.get_images(extra={"mime_type": PNG}, **wanted)
        return [decode(image.data) for image in images]


class TestRotate:
    @pytest.mark.parametrize("kind", [color_image, depth_image])
    @pytest.mark.parametrize(
        ("degrees", "quarters"),
        [(None, 2), (0, 0), (90, 1), (180, 2), (270, 3), (-90, 3), (720, 0), (450, 1), (-1e-17, 0)],
    )
    async def test_quarter_turns_are_lossless(
        self,
        bench: Bench,
        kind: Callable[[], NDArray[Any]],
        degrees: float | None,
        quarters: int,
    ) -> None:
        camera = await bench.transform(bench.still(color=kind()), rotate_step(degrees))
        (found,) = await read_images(camera)
        assert np.array_equal(found, np.rot90(kind(), -quarters))

    @pytest.mark.parametrize("degrees", [30, -45, 765])
    async def test_other_angles_enlarge_the_image_and_fill_corners_with_black(
        self, bench: Bench, degrees: float
    ) -> None:
        white = np.full((64, 96, 3), 255, np.uint8)
        (found,) = await read_images(
            await bench.transform(bench.still(c=white), rotate_step(degrees))
        )
        across, down = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
        height, width = found.shape[:2]
        assert abs(width - (96 * across + 64 * down)) < 1
        assert abs(height - (96 * down + 64 * across)) < 1
        for corner in (found[0, 0], found[0, -1], found[-1, 0], found[-1, -1]):
            assert corner.tolist() == [0, 0, 0]
        assert abs(np.count_nonzero(found[..., 0] > 127) - 96 * 64) < 100  # all of it is there

    @pytest.mark.parametrize("depth", [False, True])
    def test_rotation_is_clockwise(self, depth: bool) -> None:
        picture = np.zeros((101, 101) if depth else (101, 101, 3), np.uint16 if depth else np.uint8)
        picture[48:53, 88:93] = 255  # to the right of the middle, by 40
        found = rotate(picture, 30)
        rows, columns = np.nonzero(found if depth else found[..., 0] > 127)
        middle = (np.array(found.shape[:2]) - 1) / 2
        assert abs(rows.mean() - middle[0] - 40 * math.sin(math.radians(30))) < 1
        assert abs(columns.mean() - middle[1] - 40 * math.cos(math.radians(30))) < 1

    @pytest.mark.parametrize("degrees", [30, -45])
    async def test_rotation_does_not_interpolate_depth(self, bench: Bench, degrees: float) -> None:
        depth = np.full((64, 96), 500, np.uint16)
        depth[:, 48:] = 9000
        (found,) = await read_images(
            await bench.transform(bench.still(depth=depth), rotate_step(degrees))
        )
        assert set(np.unique(found)) == {0, 500, 9000}

    @given(st.integers(1, 40), st.integers(1, 40), st.floats(-1e6, 1e6), st.sampled_from([2, 3]))
    @example(5, 3, -1e-17, 3)
    def test_image_can_be_rotated_by_any_angle(
        self, width: int, height: int, degrees: float, dimensions: int
    ) -> None:
        picture = color_image(width, height) if dimensions == 3 else depth_image(width, height)
        found = rotate(picture, degrees)
        assert found.size >= picture.size or min(width, height) < 3
        assert (found.dtype, found.ndim) == (picture.dtype, dimensions)

    def test_rotation_to_a_too_large_image_is_refused(self) -> None:
        long = np.zeros((500, 60_000, 3), np.uint8)
        assert rotate(long, 90).shape == (60_000, 500, 3)
        with pytest.raises(InvalidRequest, match="would be too large"):
            rotate(long, 45)
        with pytest.raises(InvalidRequest, match="can only be rotated by 90, 180 or 270 degrees"):
            rotate(np.zeros((5, 40_000, 3), np.uint8), 0.001)


class TestResize:
    @pytest.mark.parametrize("kind", [color_image, depth_image])
    @pytest.mark.parametrize("size", [(48, 32), (192, 128), (96, 64), (200, 10), (1, 1), (97, 64)])
    async def test_image_can_be_resized_to_any_size(
        self, bench: Bench, kind: Callable[[], NDArray[Any]], size: tuple[int, int]
    ) -> None:
        camera = await bench.transform(bench.still(c=kind()), resize_step(*size))
        (found,) = await read_images(camera)
        assert found.shape[:2] == size[::-1]
        assert found.dtype == kind().dtype
        if found.ndim == 2:
            assert set(np.unique(found)) <= set(np.unique(kind()))
        else:
            assert np.abs(found.mean(axis=(0, 1)) - color_image().mean(axis=(0, 1))).max() < 10

    def test_downscaling_averages_pixels(self) -> None:
        """Every pixel counts, so that a model sees no aliasing pattern."""
        stripes = np.zeros((64, 96, 3), np.uint8)
        stripes[:, ::2] = 200
        assert set(np.unique(resize(stripes, 12, 8))) == {100}

    def test_resizing_to_a_too_large_image_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="10000x10000; the limit is 36 million"):
            resize(color_image(), 10_000, 10_000)
        assert MAX_PIXELS < 10_000**2


class TestCrop:
    @pytest.mark.parametrize("kind", [color_image, depth_image])
    @pytest.mark.parametrize(
        ("edges", "rows", "columns"),
        [
            ((10, 20, 30, 50), slice(20, 50), slice(10, 30)),
            ((0, 0, 96, 64), slice(0, 64), slice(0, 96)),
            ((90, 60, 200, 1000), slice(60, 64), slice(90, 96)),
            ((0.5, 0.25, 1, 1), slice(16, 64), slice(48, 96)),
            ((0.25, 0.25, 0.75, 0.75), slice(16, 48), slice(24, 72)),
            ((0, 0, 1, 1), slice(0, 64), slice(0, 96)),
            ((0, 0, 2, 1), slice(0, 1), slice(0, 2)),
            ((0.9, 0, 2, 5), slice(0, 5), slice(0, 2)),
        ],
    )
    async def test_crop_returns_the_pixels_inside_the_box(
        self,
        bench: Bench,
        kind: Callable[[], NDArray[Any]],
        edges: tuple[float, ...],
        rows: slice,
        columns: slice,
    ) -> None:
        camera = await bench.transform(bench.still(c=kind()), crop_step(*edges))
        (found,) = await read_images(camera)
        assert np.array_equal(found, kind()[rows, columns])

    @pytest.mark.parametrize("edges", [(96, 0, 100, 50), (0, 64, 9, 70), (0, 0, 0.001, 1)])
    async def test_box_outside_the_image_is_refused(
        self, bench: Bench, edges: tuple[float, ...]
    ) -> None:
        async with served(
            await bench.transform(bench.still(c=color_image()), crop_step(*edges))
        ) as channel:
            with refused() as told:
                await CameraClient("c", channel).get_images()
        assert told.status == Status.INVALID_ARGUMENT
        assert "contains no pixels of the 96x64 image" in told.words

    async def test_overlay_draws_the_crop_box(self, bench: Bench) -> None:
        still = bench.still(c=np.zeros((64, 96, 3), np.uint8))
        (found,) = await read_images(
            await bench.transform(still, crop_step(10, 20, 60, 50, overlay=True))
        )
        assert found.shape == (64, 96, 3)
        assert found[20, 30].tolist() == found[49, 30].tolist() == [0, 0, 255]
        assert found[35, 10].tolist() == found[35, 59].tolist() == [0, 0, 255]
        assert found[35, 30].tolist() == found[5, 5].tolist() == [0, 0, 0]
        assert not still.pictures["c"].pixels.any()  # drawn on a copy

    async def test_overlay_leaves_depth_unchanged(self, bench: Bench) -> None:
        still = bench.still(depth=depth_image())
        (found,) = await read_images(
            await bench.transform(still, crop_step(1, 2, 60, 50, overlay=True))
        )
        assert np.array_equal(found, depth_image())

    @given(
        st.integers(1, 50),
        st.integers(1, 50),
        st.lists(st.floats(0, 100), min_size=4, max_size=4),
        st.booleans(),
    )
    def test_any_box_is_cropped_or_refused(
        self, width: int, height: int, edges: list[float], overlay: bool
    ) -> None:
        try:
            found = crop(color_image(width, height), *edges, overlay=overlay)
        except InvalidRequest:
            return
        assert 0 < found.shape[0] <= height
        assert 0 < found.shape[1] <= width


class TestChains:
    async def test_steps_are_applied_in_order(self, bench: Bench, serve: Serve) -> None:
        steps = (rotate_step(90), crop_step(0, 0, 64, 48), resize_step(32, 24), rotate_step())
        (found,) = await read_images(
            await bench.transform(bench.still(c=color_image()), *steps), serve
        )
        expected = resize(np.ascontiguousarray(np.rot90(color_image(), -1)[:48]), 32, 24)
        assert np.array_equal(found, np.rot90(expected, 2))

    async def test_transform_cameras_can_be_chained(self, bench: Bench, serve: Serve) -> None:
        first = await bench.transform(bench.still(c=color_image()), rotate_step(90))
        second = await bench.transform(first, rotate_step(90))
        (found,) = await read_images(await bench.transform(second, rotate_step(90)), serve)
        assert np.array_equal(found, np.rot90(color_image(), -3))

    async def test_steps_without_effect_reuse_the_source_image(self, bench: Bench) -> None:
        still = bench.still(c=color_image())
        camera = await bench.transform(still, rotate_step(360), resize_step(96, 64))
        (frame,) = await camera.frames()
        assert frame.image is still.pictures["c"]

    async def test_all_sources_are_transformed(self, bench: Bench, serve: Serve) -> None:
        still = bench.still(color=color_image(), depth=depth_image())
        camera = await bench.transform(still, rotate_step(90))
        color, depth = await read_images(camera, serve)
        assert np.array_equal(color, np.rot90(color_image(), -1))
        assert np.array_equal(depth, np.rot90(depth_image(), -1))
        (depth,) = await read_images(camera, serve, filter_source_names=["depth"])
        assert np.array_equal(depth, np.rot90(depth_image(), -1))
        async with serve(camera) as channel:
            client = CameraClient("c", channel)
            images, _ = await client.get_images()
            assert [(i.name, i.mime_type) for i in images] == [("color", JPEG), ("depth", DEPTH)]
            with refused() as told:
                await client.get_images(filter_source_names=["x"])
            assert "invalid source name: x" in told.words
            with refused() as told:
                await client.get_images(filter_source_names=["depth", "depth"])
            assert "duplicate source name in filter: depth" in told.words


class CallCounter:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.calls = 0
        work = getattr(image_module, name)

        def count(*arguments: Any) -> Any:
            self.calls += 1
            return work(*arguments)

        monkeypatch.setattr(image_module, name, count)


class TestSharing:
    async def test_frame_is_transformed_and_encoded_once(
        self, bench: Bench, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encodings = CallCounter(monkeypatch, "encode")
        camera = await bench.transform(bench.still(c=color_image()), rotate_step(90))
        async with serve(camera) as channel:
            client = CameraClient("c", channel)
            answers = await asyncio.gather(*(client.get_images() for _ in range(20)))
        assert len({images[0].data for images, _ in answers}) == 1
        first, second = await camera.frames(), await camera.frames()
        assert first[0].pixels is second[0].pixels
        assert encodings.calls == 1

    async def test_unchanged_source_image_is_not_transformed_again(self, bench: Bench) -> None:
        still = bench.still(c=color_image())
        camera = await bench.transform(still, rotate_step(90))
        (before,) = await camera.frames()
        await bench.clock.advance(5)
        (after,) = await camera.frames()
        assert after.pixels is before.pixels
        assert (before.captured_at, after.captured_at) == (1000.0, 1005.0)
        still.show("c", color_image(step=40))
        (changed,) = await camera.frames()
        assert np.array_equal(changed.pixels, np.rot90(color_image(step=40), -1))

    async def test_source_image_is_not_kept(self, bench: Bench) -> None:
        source = ForeignCamera("source", c=encode_pixels(".png", color_image()))
        camera = await bench.transform(source, rotate_step(90))
        pictures = {id(each) for each in gc.get_objects() if isinstance(each, Image)}
        await camera.frames()
        gc.collect()
        left = [
            each
            for each in gc.get_objects()
            if isinstance(each, Image) and id(each) not in pictures
        ]
        # One decoded image for repeated requests, and one transformed image.
        assert sorted(each.pixels.shape for each in left) == [(64, 96, 3), (96, 64, 3)]

    async def test_cancelled_reader_does_not_affect_the_others(self, bench: Bench) -> None:
        camera = await bench.transform(bench.still(c=color_image()), rotate_step(30))
        asked = [asyncio.ensure_future(camera.frames()) for _ in range(3)]
        await run_others()
        asked[0].cancel()
        assert (await asked[1])[0].pixels is (await asked[2])[0].pixels

    async def test_failure_is_not_cached(self, bench: Bench) -> None:
        still = bench.still(c=color_image(20, 20))
        camera = await bench.transform(still, crop_step(50, 50, 60, 60))
        for _ in range(2):
            with pytest.raises(InvalidRequest):
                await camera.frames()
        still.show("c", color_image())
        assert (await camera.frames())[0].width == 10

    async def test_memory_does_not_grow_with_calls(self, bench: Bench) -> None:
        still = bench.still(c=color_image())
        camera = await bench.transform(still, rotate_step(90))
        alive: weakref.WeakSet[Image] = weakref.WeakSet()
        for step in range(30):
            still.show("c", color_image(step=step))
            alive.add((await camera.frames())[0].image)
        gc.collect()
        assert len(alive) == 1


class TestForeignCameras:
    async def test_foreign_images_are_transformed(self, bench: Bench, serve: Serve) -> None:
        source = ForeignCamera(
            "source",
            captured_at=777.0,
            a=encode_pixels(".png", color_image()),
            d=encode(depth_image(), DEPTH),
        )
        camera = await bench.transform(source, rotate_step(90))
        color, depth = await read_images(camera, serve)
        assert np.array_equal(color, np.rot90(color_image(), -1))
        assert np.array_equal(depth, np.rot90(depth_image(), -1))
        async with serve(camera) as channel:
            images, metadata = await CameraClient("c", channel).get_images(
                filter_source_names=["d"]
            )
            assert [image.name for image in images] == ["d"]
            assert metadata.captured_at.ToMilliseconds() == 777_000
        assert source.asked[-1] == ["d"]

    async def test_bytes_pass_through_when_no_step_changes_them(
        self, bench: Bench, serve: Serve
    ) -> None:
        data = encode_pixels(".jpg", color_image())
        async with serve(
            await bench.transform(ForeignCamera("source", c=data), rotate_step(0))
        ) as channel:
            (image,), _ = await CameraClient("c", channel).get_images()
        assert image.data == data

    async def test_concurrent_readers_share_the_decoding(
        self, bench: Bench, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decodings = CallCounter(monkeypatch, "decode")
        source = ForeignCamera("source", c=encode_pixels(".png", color_image(1000, 800)))
        source.held = asyncio.Event()
        async with serve(await bench.transform(source, rotate_step(90))) as channel:
            client = CameraClient("c", channel)
            asked = [asyncio.ensure_future(client.get_images()) for _ in range(80)]
            await source.wait_for_requests(80)
            source.held.set()
            await asyncio.gather(*asked)
        assert decodings.calls < 10

    async def test_cancelled_reader_of_a_stuck_camera_blocks_nobody(self, bench: Bench) -> None:
        source = ForeignCamera("source", c=encode_pixels(".png", color_image()))
        source.held = asyncio.Event()
        camera = await bench.transform(source, rotate_step(90))
        hanging = asyncio.ensure_future(camera.frames())
        await source.wait_for_requests(1)
        source.held = None
        assert (await asyncio.wait_for(camera.frames(), 5))[0].width == 64
        hanging.cancel()
        await asyncio.wait([hanging])

    async def test_error_of_a_foreign_camera_is_passed_on(self, bench: Bench, serve: Serve) -> None:
        class Broken(ForeignCamera):
            async def get_images(self, **_: Any) -> Any:
                raise RuntimeError("the lens is dirty")

        async with serve(await bench.transform(Broken("source"), rotate_step(90))) as channel:
            with refused() as told:
                await CameraClient("c", channel).get_images()
        assert "the lens is dirty" in told.words

    async def test_foreign_camera_without_images(self, bench: Bench, serve: Serve) -> None:
        async with serve(
            await bench.transform(ForeignCamera("source"), rotate_step(90))
        ) as channel:
            assert (await CameraClient("c", channel).get_images())[0] == []


class TestBadImages:
    @pytest.mark.parametrize("kind", BAD_PICTURES)
    async def test_bad_image_is_reported_quickly(
        self, bench: Bench, serve: Serve, kind: str
    ) -> None:
        make, words = BAD_PICTURES[kind]
        source = ForeignCamera("source", c=make())
        async with serve(await bench.transform(source, rotate_step(90))) as channel:
            client = CameraClient("c", channel)
            began = time.monotonic()
            with refused() as told:
                await client.get_images()
            assert time.monotonic() - began < limit(1)
            assert told.status == Status.INTERNAL
            assert told.words.startswith('camera "source" returned a bad image: ')
            assert words in told.words
            source.images = [("c", encode_pixels(".jpg", color_image()))]
            (image,), _ = await client.get_images()
            assert read_header(image.data).width == 64

    async def test_large_image_in_a_small_file_is_transformed(self, bench: Bench) -> None:
        source = ForeignCamera("source", c=jpeg(6000, 6000, (200,)))
        camera = await bench.transform(source, resize_step(60, 60), rotate_step(30))
        (frame,) = await camera.frames()
        assert frame.pixels[40, 40].tolist() == [200] * 3

    async def test_rotation_that_would_exhaust_memory_is_refused(self, bench: Bench) -> None:
        source = ForeignCamera("source", c=png(60_000, 500))
        camera = await bench.transform(source, rotate_step(45))
        with pytest.raises(InvalidRequest, match="would be too large"):
            await camera.frames()


class TestProperties:
    async def test_configured_intrinsics_enable_point_clouds(
        self, bench: Bench, serve: Serve
    ) -> None:
        still = bench.still(depth=depth_image(), color=color_image())
        camera = await bench.transform(still, rotate_step(90), intrinsic_parameters=LENS)
        async with serve(camera) as channel:
            client = CameraClient("c", channel)
            properties = await client.get_properties()
            assert properties.supports_pcd
            assert properties.intrinsic_parameters.width_px == 64
            cloud, mime_type = await client.get_point_cloud()
        assert mime_type == PCD
        lens = Intrinsics(64, 96, 80, 90, 31.5, 47.5)
        expected = np.rot90(depth_image(), -1), np.rot90(color_image(), -1)
        assert cloud == depth_to_pcd(expected[0], lens, expected[1])

    async def test_properties_without_intrinsics(self, bench: Bench, serve: Serve) -> None:
        async with serve(
            await bench.transform(bench.still(c=color_image()), rotate_step(90))
        ) as channel:
            client = CameraClient("c", channel)
            properties = await client.get_properties()
            assert not properties.supports_pcd
            assert list(properties.mime_types) == [JPEG, PNG, RGBA]
            with refused() as told:
                await client.get_point_cloud()
            assert told.status == Status.UNIMPLEMENTED

    async def test_point_cloud_without_depth_is_refused(self, bench: Bench, serve: Serve) -> None:
        camera = await bench.transform(
            bench.still(c=color_image()), rotate_step(90), intrinsic_parameters=LENS
        )
        async with serve(camera) as channel:
            with refused() as told:
                await CameraClient("c", channel).get_point_cloud()
            assert told.words == 'camera "c" has no point clouds: it does not provide depth'


async def test_close_interrupts_waiting_readers(bench: Bench) -> None:
    camera = await bench.transform(
        bench.still(c=color_image(2000, 1500)), rotate_step(30), rotate_step(30), rotate_step(30)
    )
    asked = [asyncio.ensure_future(camera.frames()) for _ in range(5)]
    await run_others()
    await camera.close()
    done, waiting = await asyncio.wait(asked, timeout=5)
    assert not waiting
    assert all(isinstance(each.exception(), Exception) for each in done)


def test_rotation_direction_matches_opencv() -> None:
    assert np.array_equal(
        rotate(color_image(), 90), cv2.rotate(color_image(), cv2.ROTATE_90_CLOCKWISE)
    )
