from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.media.foreign_camera import ForeignCamera
from tests.support.media.pictures import color_image, depth_image, encode_pixels
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.core.single_flight import SingleFlightGroup
from cogwork.core.workers import TooMuchWork, Workers
from cogwork.media import image as image_module
from cogwork.media.image import NoSuchEncoding, decode, encode
from cogwork.media.image_header import DEPTH, JPEG, PNG, RGBA
from cogwork.resource.frame import (
    Annotation,
    BadCameraImage,
    Frame,
    Image,
    decode_image,
    get_frames,
    produces_frames,
)

JPEG_DATA = encode_pixels(".jpg", color_image())
PNG_DATA = encode_pixels(".png", color_image(32, 24))
DEPTH_DATA = encode(depth_image(), DEPTH)


class CountedFunction:
    """A function that counts its calls and can be blocked."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.calls = 0
        self.resume = threading.Event()
        self.resume.set()
        self._work = work

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        assert self.resume.wait(10)
        return self._work(*arguments)


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> CountedFunction:
    function = CountedFunction(encode)
    monkeypatch.setattr(image_module, "encode", function)
    return function


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> CountedFunction:
    function = CountedFunction(decode)
    monkeypatch.setattr(image_module, "decode", function)
    return function


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers("test", waiting=4)
    yield workers
    workers.close()


class TestImages:
    def test_frame_pixels_are_read_only(self, workers: Workers) -> None:
        frame = Frame(Image(color_image(), workers), 0.0)
        with pytest.raises(ValueError, match="read-only"):
            frame.pixels[0, 0] = 7
        with pytest.raises(ValueError, match="read-only"):
            frame.pixels[:] += 1
        with pytest.raises(ValueError, match="read-only"):
            frame.image.pixels.ravel()[0] = 7

    @pytest.mark.parametrize("data", [JPEG_DATA, PNG_DATA, DEPTH_DATA, encode(color_image(), RGBA)])
    def test_decoded_pixels_are_read_only(self, workers: Workers, data: bytes) -> None:
        with pytest.raises(ValueError, match="read-only"):
            decode_image(data, workers).pixels[0, 0] = 7

    def test_frames_describe_their_image(self, workers: Workers) -> None:
        color = Frame(Image(color_image(96, 64), workers), 1.5, "color")
        assert (color.width, color.height, color.is_depth) == (96, 64, False)
        assert color.default_mime_type == JPEG
        depth = Frame(Image(depth_image(96, 64), workers), 1.5, "depth")
        assert (depth.width, depth.height, depth.is_depth) == (96, 64, True)
        assert depth.default_mime_type == DEPTH

    async def test_with_capture_time_shares_the_image(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        first = Frame(Image(color_image(), workers), 1.0, "color", (Annotation("nut", 0, 0, 1, 1),))
        later = first.with_capture_time(2.0)
        assert (first.captured_at, later.captured_at) == (1.0, 2.0)
        assert later.pixels is first.pixels
        assert (later.source, later.annotations) == (first.source, first.annotations)
        assert await later.encode(JPEG) is await first.encode(JPEG)
        assert encodings.calls == 1


class TestEncoding:
    async def test_concurrent_encodings_share_one_result(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        picture = Image(color_image(), workers)
        encodings.resume.clear()
        requests = [asyncio.ensure_future(picture.encode(JPEG)) for _ in range(50)]
        await run_others()
        encodings.resume.set()
        first, *others = await asyncio.gather(*requests)
        assert all(each is first for each in others)
        assert await picture.encode(JPEG) is first
        assert encodings.calls == 1
        assert decode(first).shape == color_image().shape

    async def test_each_type_is_encoded_once(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        picture = Image(color_image(), workers)
        for _ in range(2):
            for mime_type in (JPEG, PNG, RGBA):
                assert await picture.encode(mime_type) == encode(color_image(), mime_type)
        assert encodings.calls == 3

    async def test_cancelled_caller_does_not_cancel_the_encoding(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        picture = Image(color_image(), workers)
        encodings.resume.clear()
        requests = [asyncio.ensure_future(picture.encode(JPEG)) for _ in range(3)]
        await run_others()
        requests[0].cancel()
        encodings.resume.set()
        assert await requests[1] is await requests[2]
        assert encodings.calls == 1

    async def test_original_bytes_are_not_encoded_again(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        picture = await workers.run(decode_image, JPEG_DATA, workers)
        assert await picture.encode(JPEG) is JPEG_DATA
        assert encodings.calls == 0
        assert decode(await picture.encode(PNG)).shape == color_image().shape

    async def test_unsupported_types_are_not_cached(self, workers: Workers) -> None:
        picture = Image(color_image(), workers)
        for number in range(100):
            with pytest.raises(NoSuchEncoding, match="cannot be"):
                await picture.encode(f"image/x-{number}")
        assert picture._encodings == {}

    async def test_encoding_over_the_queue_limit_is_refused(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        encodings.resume.clear()
        pictures = [Image(color_image(8, 8, step), workers) for step in range(6)]
        requests = [asyncio.ensure_future(each.encode(JPEG)) for each in pictures[:5]]
        await run_others()
        with pytest.raises(TooMuchWork, match="test is busy: 5 tasks"):
            await pictures[5].encode(JPEG)
        encodings.resume.set()
        await asyncio.gather(*requests)
        assert await pictures[5].encode(JPEG)

    async def test_failed_encoding_is_not_cached(
        self, workers: Workers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> bytes:
            raise MemoryError

        picture = Image(color_image(), workers)
        with monkeypatch.context() as patch:
            patch.setattr(image_module, "encode", fail)
            with pytest.raises(MemoryError):
                await picture.encode(JPEG)
        assert await picture.encode(JPEG)

    async def test_closed_camera_returns_only_cached_encodings(self, workers: Workers) -> None:
        picture = Image(color_image(), workers)
        data = await picture.encode(JPEG)
        workers.close()
        assert await picture.encode(JPEG) is data
        with pytest.raises(Interrupted, match="test is closed"):
            await picture.encode(PNG)

    async def test_image_is_freed_with_its_last_reference(self, workers: Workers) -> None:
        """Images are large, so they must be freed without the garbage collector."""
        gc.disable()
        try:
            picture = Image(color_image(), workers)
            await picture.encode(JPEG)
            await picture.encode(JPEG)
            await workers.run(int)  # until the thread has released the last work
            gone = weakref.ref(picture)
            del picture
            assert gone() is None
        finally:
            gc.enable()


class FrameCamera:
    """A camera that produces frames."""

    def __init__(self, frames: list[Frame]) -> None:
        self._frames = frames

    async def frames(self, sources: tuple[str, ...] = ()) -> list[Frame]:
        return [each for each in self._frames if not sources or each.source in sources]


class TestGetFrames:
    async def test_frame_camera_shares_its_memory(self, workers: Workers) -> None:
        pixels: NDArray[Any] = color_image()
        camera = FrameCamera([Frame(Image(pixels, workers), 1.0)])
        seen = await asyncio.gather(*(get_frames(camera, workers, ManualClock()) for _ in range(3)))
        for (frame,) in seen:
            assert frame.pixels is pixels
            assert np.shares_memory(frame.pixels, pixels)

    async def test_foreign_camera_images_are_decoded(
        self, workers: Workers, decodings: CountedFunction
    ) -> None:
        camera = ForeignCamera(
            captured_at=1234.5, color=JPEG_DATA, depth=DEPTH_DATA, other=PNG_DATA
        )
        frames = await get_frames(camera, workers, ManualClock())
        assert [frame.source for frame in frames] == ["color", "depth", "other"]
        assert [frame.captured_at for frame in frames] == [1234.5] * 3
        assert [frame.is_depth for frame in frames] == [False, True, False]
        assert np.array_equal(frames[0].pixels, decode(JPEG_DATA))
        assert np.array_equal(frames[1].pixels, depth_image())
        assert np.array_equal(frames[2].pixels, color_image(32, 24))
        assert decodings.calls == 3

    async def test_foreign_image_bytes_are_passed_on_unchanged(
        self, workers: Workers, encodings: CountedFunction
    ) -> None:
        camera = ForeignCamera(color=JPEG_DATA, depth=DEPTH_DATA, other=PNG_DATA)
        color, depth, other = await get_frames(camera, workers, ManualClock())
        assert await color.encode(JPEG) is JPEG_DATA
        assert await depth.encode(DEPTH) is DEPTH_DATA
        assert await other.encode(PNG) is PNG_DATA  # whatever type the SDK declares
        assert encodings.calls == 0

    async def test_sources_are_filtered(self, workers: Workers) -> None:
        camera = ForeignCamera(color=JPEG_DATA, depth=DEPTH_DATA)
        (frame,) = await get_frames(camera, workers, ManualClock(), ["depth"])
        assert frame.source == "depth"
        assert camera.asked == [["depth"]]
        assert await get_frames(camera, workers, ManualClock(), ["elsewhere"]) == []

    async def test_missing_capture_time_is_the_current_time(self, workers: Workers) -> None:
        clock = ManualClock(5000.0)
        (frame,) = await get_frames(ForeignCamera(color=JPEG_DATA), workers, clock)
        assert frame.captured_at == 5000.0

    async def test_produces_frames_requires_a_frames_method(self) -> None:
        assert produces_frames(FrameCamera([]))
        camera = ForeignCamera()
        for theirs in ("a text", 5, None, list):
            camera.frames = theirs
            assert not produces_frames(camera)

    @pytest.mark.parametrize("kind", [bytearray, memoryview])
    async def test_bytes_like_images_are_decoded(
        self, workers: Workers, kind: Callable[[bytes], Any]
    ) -> None:
        (frame,) = await get_frames(ForeignCamera(c=kind(JPEG_DATA)), workers, ManualClock())
        assert (frame.width, frame.height) == (96, 64)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "it has no data"),
            (JPEG_DATA[:500], "truncated"),
            (b"GIF89a....", "a GIF"),
            ("text", "must be bytes, not str"),
            (None, "must be bytes, not NoneType"),
            (10**12, "must be bytes, not int"),
        ],
    )
    async def test_bad_image_raises_with_the_camera_name(
        self, workers: Workers, data: Any, words: str
    ) -> None:
        camera = ForeignCamera("belt", good=JPEG_DATA, bad=data)
        with pytest.raises(BadCameraImage, match='camera "belt" returned a bad image: ') as error:
            await get_frames(camera, workers, ManualClock())
        assert words in str(error.value)
        assert error.value.status == "INTERNAL"
        (frame,) = await get_frames(camera, workers, ManualClock(), ["good"])
        assert frame.width == 96


class TestSharedDecoding:
    """Decoding that several callers of one camera share."""

    async def test_concurrent_callers_share_one_decoding(
        self, workers: Workers, decodings: CountedFunction
    ) -> None:
        camera, shared = ForeignCamera(color=JPEG_DATA), SingleFlightGroup[Frame]()
        decodings.resume.clear()
        requests = [
            asyncio.ensure_future(get_frames(camera, workers, ManualClock(), (), shared))
            for _ in range(40)  # more than the queue allows
        ]
        await camera.wait_for_requests(40)
        decodings.resume.set()
        seen = [frame for (frame,) in await asyncio.gather(*requests)]
        assert decodings.calls == 1
        assert all(frame.pixels is seen[0].pixels for frame in seen)
        await shared.aclose()

    async def test_same_image_is_not_decoded_again(
        self, workers: Workers, decodings: CountedFunction
    ) -> None:
        camera, shared = ForeignCamera(captured_at=7.0, color=JPEG_DATA), SingleFlightGroup[Frame]()
        for _ in range(3):
            await get_frames(camera, workers, ManualClock(), (), shared)
        assert decodings.calls == 1
        camera.captured_at = 8.0
        (frame,) = await get_frames(camera, workers, ManualClock(), (), shared)
        assert (decodings.calls, frame.captured_at) == (2, 8.0)
        camera.images = [("color", PNG_DATA)]
        (frame,) = await get_frames(camera, workers, ManualClock(), (), shared)
        assert (decodings.calls, frame.width) == (3, 32)
        await shared.aclose()

    async def test_images_with_the_same_name_are_distinguished(self, workers: Workers) -> None:
        camera, shared = ForeignCamera(), SingleFlightGroup[Frame]()
        camera.images = [("", JPEG_DATA), ("", PNG_DATA), ("", DEPTH_DATA)]
        clock = ManualClock()
        answers = await asyncio.gather(
            *(get_frames(camera, workers, clock, (), shared) for _ in range(5))
        )
        for frames in answers:
            assert [frame.width for frame in frames] == [96, 32, 96]
            assert [frame.is_depth for frame in frames] == [False, False, True]
        await shared.aclose()

    async def test_cache_of_source_names_is_bounded(self, workers: Workers) -> None:
        camera, shared = ForeignCamera(), SingleFlightGroup[Frame]()
        alive: weakref.WeakSet[Image] = weakref.WeakSet()
        for number in range(60):
            camera.images = [(f"at {number}", PNG_DATA)]
            (frame,) = await get_frames(camera, workers, ManualClock(), (), shared)
            alive.add(frame.image)
        gc.collect()
        assert len(alive) <= 17
        await shared.aclose()

    async def test_bad_image_is_not_cached(self, workers: Workers) -> None:
        camera, shared = ForeignCamera(color=b"no"), SingleFlightGroup[Frame]()
        for _ in range(2):
            with pytest.raises(BadCameraImage):
                await get_frames(camera, workers, ManualClock(), (), shared)
        camera.images = [("color", JPEG_DATA)]
        assert await get_frames(camera, workers, ManualClock(), (), shared)
        await shared.aclose()
