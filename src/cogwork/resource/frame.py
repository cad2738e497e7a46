"""Images in memory, shared by all consumers without copies."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.single_flight import SingleFlightGroup
from cogwork.core.workers import Workers, await_future
from cogwork.media.image_header import DEPTH, JPEG, BadImage, read_header

if TYPE_CHECKING:
    # OpenCV is only needed for built-in cameras; cameras of modules are served without it.
    from cogwork.media.image import Pixels


class Image:
    """Read-only pixels and their encodings.

    To draw on the pixels, copy them first. An image is encoded on first use, once for each MIME
    type.
    """

    def __init__(
        self, pixels: Pixels, workers: Workers, encoded: Mapping[str, bytes] | None = None
    ) -> None:
        """Take ownership of the pixels. `encoded` holds known encodings by MIME type."""
        pixels.setflags(write=False)
        self.pixels = pixels
        self._workers = workers
        self._encodings: dict[str, Future[bytes]] = {}
        for mime_type, data in (encoded or {}).items():
            self._encodings[mime_type] = Future()
            self._encodings[mime_type].set_result(data)

    async def encode(self, mime_type: str) -> bytes:
        encoding = self._encodings.get(mime_type)
        if encoding is None:
            from cogwork.media.image import check_type, encode

            check_type(self.pixels, mime_type)  # clients may request any MIME type
            encoding = self._workers.submit(encode, self.pixels, mime_type)
            self._encodings[mime_type] = encoding
        try:
            return await await_future(encoding)
        except Exception:
            self._encodings.pop(mime_type, None)
            raise


@dataclass(frozen=True, slots=True)
class Annotation:
    """A labeled box in an image; coordinates are fractions of its width and height."""

    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    confidence: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """An image with its capture time and source. It is passed by reference."""

    image: Image
    captured_at: float
    """Seconds since 1970."""
    source: str = ""
    """The name of the image source; empty for a camera with a single source."""
    annotations: tuple[Annotation, ...] = ()

    @property
    def pixels(self) -> Pixels:
        return self.image.pixels

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def is_depth(self) -> bool:
        return self.pixels.ndim == 2

    @property
    def default_mime_type(self) -> str:
        return DEPTH if self.is_depth else JPEG

    def with_capture_time(self, captured_at: float) -> Frame:
        """Return the same image with another capture time. Its encodings are shared."""
        return replace(self, captured_at=captured_at)

    async def encode(self, mime_type: str) -> bytes:
        return await self.image.encode(mime_type)


class FrameProducer(Protocol):
    """A camera in this process that returns images without encoding them."""

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        """Return simultaneous frames of the named sources, or of all sources by default."""


def produces_frames(camera: object) -> TypeGuard[FrameProducer]:
    """Return whether a camera has our `frames` method.

    In third-party classes, an attribute of that name may be anything, such as a list.
    """
    return inspect.iscoroutinefunction(getattr(camera, "frames", None))


class BadCameraImage(CogworkError):
    """A camera returned data that is not a valid image."""


async def get_frames(
    camera: Any,
    workers: Workers,
    clock: Clock,
    sources: Sequence[str] = (),
    decoded: SingleFlightGroup[Frame] | None = None,
) -> Sequence[Frame]:
    """Return the frames of any camera.

    If the camera has no `frames` method, its images are decoded by the workers. Concurrent callers
    pass the same `decoded` group, so that an image is decoded once for all of them.
    """
    if produces_frames(camera):
        return await camera.frames(sources)
    images, metadata = await camera.get_images(filter_source_names=sources)
    captured_at = metadata.captured_at.ToNanoseconds() / 1e9 or clock.time()
    decoded = decoded or SingleFlightGroup()
    try:
        return [
            await _decode_shared(decoded, key, _image_bytes(image), captured_at, workers)
            for key, image in zip(make_source_keys(i.name for i in images), images, strict=True)
        ]
    except BadImage as error:
        raise BadCameraImage(f'camera "{camera.name}" returned a bad image: {error}') from error


SourceKey = tuple[str, int]
"""The name of a source, and the index of the image among images with that name."""


def make_source_keys(names: Iterable[str]) -> Iterator[SourceKey]:
    """Yield a unique key for each image of a camera; names may repeat."""
    counts: Counter[str] = Counter()
    for name in names:
        yield name, counts[name]
        counts[name] += 1


async def _decode_shared(
    decoded: SingleFlightGroup[Frame],
    key: SourceKey,
    data: bytes,
    captured_at: float,
    workers: Workers,
) -> Frame:
    def start() -> asyncio.Future[Frame]:
        return asyncio.wrap_future(
            workers.submit(_decode_frame, data, captured_at, key[0], workers)
        )

    return await decoded.get(key, (captured_at, data), start)


def _decode_frame(data: bytes, captured_at: float, source: str, workers: Workers) -> Frame:
    return Frame(decode_image(data, workers), captured_at, source)


def decode_image(data: bytes, workers: Workers) -> Image:
    """Decode an image. This is slow: call it in a thread."""
    from cogwork.media.image import decode

    header = read_header(data)
    return Image(decode(data, header), workers, {header.mime_type: data})


def _image_bytes(image: Any) -> bytes:
    data = image.data
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise BadImage(f"the image data must be bytes, not {type(data).__name__}")
