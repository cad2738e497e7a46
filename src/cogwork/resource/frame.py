"""One picture in memory, shared by everybody who looks at it."""

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
from cogwork.core.newest import NewestOfEach
from cogwork.core.workers import Workers, outcome
from cogwork.resource.image_header import DEPTH, JPEG, BadImage, read_header

if TYPE_CHECKING:
    # OpenCV is there when a camera is configured; cameras of others are served without it.
    from cogwork.resource.image import Pixels


class Picture:
    """Pixels nobody may change: whoever draws takes a copy. They are encoded when first asked
    for, once for each type, however many ask."""

    def __init__(
        self, pixels: Pixels, workers: Workers, encoded: Mapping[str, bytes] | None = None
    ) -> None:
        """Takes the pixels over. `encoded` is what is already known of them, by type."""
        pixels.setflags(write=False)
        self.pixels = pixels
        self._workers = workers
        self._encodings: dict[str, Future[bytes]] = {}
        for mime_type, data in (encoded or {}).items():
            self._encodings[mime_type] = Future()
            self._encodings[mime_type].set_result(data)

    async def encoded(self, mime_type: str) -> bytes:
        encoding = self._encodings.get(mime_type)
        if encoding is None:
            from cogwork.resource.image import check_type, encode

            check_type(self.pixels, mime_type)  # anybody may ask for any
            encoding = self._workers.submit(encode, self.pixels, mime_type)
            self._encodings[mime_type] = encoding
        try:
            return await outcome(encoding)
        except Exception:
            self._encodings.pop(mime_type, None)
            raise


@dataclass(frozen=True, slots=True)
class Mark:
    """Something known to be in a picture, and where: parts of its width and height."""

    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    confidence: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture, when it was taken and by whom. It travels by reference."""

    picture: Picture
    captured_at: float
    """Seconds since 1970."""
    source: str = ""
    """Which of a camera's pictures it is; a camera with one leaves it empty."""
    marks: tuple[Mark, ...] = ()

    @property
    def pixels(self) -> Pixels:
        return self.picture.pixels

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
    def usual_type(self) -> str:
        return DEPTH if self.is_depth else JPEG

    def seen_at(self, moment: float) -> Frame:
        """What stands still, looked at again: it is not encoded again."""
        return replace(self, captured_at=moment)

    async def encoded(self, mime_type: str) -> bytes:
        return await self.picture.encoded(mime_type)


class OffersFrames(Protocol):
    """A camera in this process that hands over what it sees without encoding it."""

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        """Those of the sources, of one moment; of all sources when none is named."""


def offers_frames(camera: object) -> TypeGuard[OffersFrames]:
    """What others call `frames` may be anything, such as a list."""
    return inspect.iscoroutinefunction(getattr(camera, "frames", None))


class BadPicture(CogworkError):
    """A camera hands over what is no picture."""


async def frames_of(
    camera: Any,
    workers: Workers,
    clock: Clock,
    sources: Sequence[str] = (),
    decoded: NewestOfEach[Frame] | None = None,
) -> Sequence[Frame]:
    """Of any camera: the bytes of one that has no frames are decoded, by the workers.

    Whoever asks for many at once gives a `decoded` to share, so that one picture is decoded at a
    time, however many want it.
    """
    if offers_frames(camera):
        return await camera.frames(sources)
    images, metadata = await camera.get_images(filter_source_names=sources)
    moment = metadata.captured_at.ToNanoseconds() / 1e9 or clock.time()
    decoded = decoded or NewestOfEach()
    try:
        return [
            await _decoded(decoded, place, _bytes_of(image), moment, workers)
            for place, image in zip(places(i.name for i in images), images, strict=True)
        ]
    except BadImage as error:
        raise BadPicture(f'camera "{camera.name}" hands over a bad picture: {error}') from error


Place = tuple[str, int]


def places(names: Iterable[str]) -> Iterator[Place]:
    """The names of a camera's pictures, told apart where several have the same."""
    met: Counter[str] = Counter()
    for name in names:
        yield name, met[name]
        met[name] += 1


async def _decoded(
    decoded: NewestOfEach[Frame], place: Place, data: bytes, moment: float, workers: Workers
) -> Frame:
    def start() -> asyncio.Future[Frame]:
        return asyncio.wrap_future(workers.submit(_frame, data, moment, place[0], workers))

    return await decoded.of(place, (moment, data), start)


def _frame(data: bytes, moment: float, source: str, workers: Workers) -> Frame:
    return Frame(picture_of(data, workers), moment, source)


def picture_of(data: bytes, workers: Workers) -> Picture:
    """Takes time: call it in a thread."""
    from cogwork.resource.image import decode

    header = read_header(data)
    return Picture(decode(data, header), workers, {header.mime_type: data})


def _bytes_of(image: Any) -> bytes:
    data = image.data
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise BadImage(f"its data is no bytes, but of type {type(data).__name__}")
