"""Which of a device's formats to take pictures in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cogwork.core.errors import CogworkError
from cogwork.drivers.camera.v4l2 import Format, FormatRange, Offer

FOURCCS = {
    "MJPEG": "MJPG",
    "JPG": "JPEG",
    "YUY2": "YUYV",
    "YUYV422": "YUYV",
    "UYVY422": "UYVY",
    "I420": "YU12",
    "IYUV": "YU12",
    "YUV420P": "YU12",
    "RGB": "RGB3",
    "RGB24": "RGB3",
    "BGR": "BGR3",
    "BGR24": "BGR3",
    "BGR0": "XR24",
    "BGRX": "XR24",
    "BGRA": "AR24",
    "SRGGB8": "RGGB",
    "SBGGR8": "BA81",
    "SGBRG8": "GBRG",
    "SGRBG8": "GRBG",
    "GRAY": "GREY",
    "GRAY8": "GREY",
    "Y8": "GREY",
    "Y800": "GREY",
    "GRAY16": "Y16",
    "GRAY16LE": "Y16",
    "H.264": "H264",
    "AVC": "H264",
    "AVC1": "H264",
    "H265": "HEVC",
    "H.265": "HEVC",
}
"""What people, FFmpeg, GStreamer and Windows call the formats, and what Linux calls them. A name
that is not here is one of Linux's own, whatever its case: `MJPG`, `YUYV`, `NV12`, `Z16`, …"""

# Bytes a pixel of what OpenCV makes BGR pictures of; of equals, the earlier is taken.
_COLOUR = {
    "YUYV": 2.0,
    "UYVY": 2.0,
    "YU12": 1.5,
    "YV12": 1.5,
    "BGR3": 3.0,
    "RGB3": 3.0,
    "XR24": 4.0,
    "AR24": 4.0,
    # OpenCV 4.10 swaps red and blue of these.
    "NV12": 1.5,
    "NV21": 1.5,
}
_COMPRESSED = dict.fromkeys(("MJPG", "JPEG"), 0.0)
# Colours that nobody has balanced, and none: only for those who have nothing else.
_BAYER = dict.fromkeys(("RGGB", "BA81", "GBRG", "GRBG"), 1.0)
_GREY = {"GREY": 1.0, "Y16": 2.0, "Y12": 2.0, "Y10": 2.0}

_TIERS = ({**_COLOUR, **_COMPRESSED}, _BAYER, _GREY)
_BYTES = {**_COLOUR, **_COMPRESSED, **_BAYER, **_GREY}
_ORDER = list(_BYTES)

_USUAL_SIZE = (1280, 720)
_LARGE_SIZE = (1920, 1080)
_USUAL_RATE = 30.0
_FLUENT_RATE = 15.0
_USB2_BYTES = 35e6
_LISTED = 5


class NoSuchFormat(CogworkError):
    """The device has no pictures as they were asked for."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the configuration asks for; None: whatever is best."""

    format: str | None = None
    width: int | None = None
    height: int | None = None
    frame_rate: float | None = None

    @property
    def fourcc(self) -> str | None:
        return None if self.format is None else fourcc_of(self.format)

    def __str__(self) -> str:
        return _words(self.fourcc or "pictures", self._size(), _shown(self.frame_rate))

    def _size(self) -> str:
        if self.width and self.height:
            return f"{self.width}x{self.height}"
        return f"{self.width} wide" if self.width else f"{self.height} high" if self.height else ""


@dataclass(frozen=True, slots=True)
class Choice:
    fourcc: str
    width: int
    height: int
    rate: float | None
    """None: whichever the device has, as it does not say."""

    def unmet(self, wanted: Wanted) -> int:
        """How many parts of what was asked for it is not."""
        rate = wanted.frame_rate
        return sum(
            (
                wanted.fourcc not in (None, self.fourcc),
                wanted.width not in (None, self.width) or wanted.height not in (None, self.height),
                rate is not None and self.rate is not None and not same_rate(rate, self.rate),
            )
        )

    def __str__(self) -> str:
        return _words(self.fourcc, f"{self.width}x{self.height}", _shown(self.rate))


def fourcc_of(name: str) -> str:
    name = name.strip().upper()
    return FOURCCS.get(name, name)


def same_rate(one: float, other: float) -> bool:
    """30 is also 30000 in 1001 seconds."""
    return math.isclose(one, other, rel_tol=0.002)


def choose(formats: Sequence[Offer], wanted: Wanted) -> Choice:
    """What is asked for is exact, or NoSuchFormat is raised.

    What is left open is colour rather than grey, at most 1920x1080, at least 15 pictures a second,
    nearest to 1280x720, nearest to 30 a second; each ahead of the next. Then raw pictures go
    ahead of JPEG, which costs decoding, unless they are too many bytes for USB 2.
    """
    decoded = [offer for offer in formats if offer.fourcc in _BYTES]
    if not decoded or (wanted.fourcc not in _BYTES and _has(formats, wanted.fourcc)):
        raise NoSuchFormat(_undecoded(formats, decoded, wanted))
    choices = [choice for offer in decoded for choice in _choices(offer, wanted)]
    fitting = [choice for choice in choices if not choice.unmet(wanted)]
    if not fitting:
        raise NoSuchFormat(_not_offered(decoded, wanted))
    return min(fitting, key=_reluctance)


def _has(formats: Sequence[Offer], fourcc: str | None) -> bool:
    return any(offer.fourcc == fourcc for offer in formats)


def _choices(offer: Offer, wanted: Wanted) -> Iterator[Choice]:
    if isinstance(offer, Format):
        for rate in offer.rates or (wanted.frame_rate,):
            yield Choice(offer.fourcc, offer.width, offer.height, rate)
    else:
        yield Choice(offer.fourcc, *_nearest_size(offer, wanted), _nearest_rate(offer, wanted))


def _nearest_size(offer: FormatRange, wanted: Wanted) -> tuple[int, int]:
    """In the shape of the usual size, as far as the shape is open."""
    usual_width, usual_height = _USUAL_SIZE
    shape = usual_width / usual_height
    width = offer.widths.nearest(
        wanted.width or (wanted.height * shape if wanted.height else usual_width)
    )
    return width, offer.heights.nearest(wanted.height or width / shape)


def _nearest_rate(offer: FormatRange, wanted: Wanted) -> float | None:
    if offer.rates is None:
        return wanted.frame_rate
    slowest, fastest = offer.rates
    return min(max(wanted.frame_rate or _USUAL_RATE, slowest), fastest)


def _reluctance(choice: Choice) -> tuple[float, ...]:
    rate = _USUAL_RATE if choice.rate is None else choice.rate
    return (
        next(tier for tier, fourccs in enumerate(_TIERS) if choice.fourcc in fourccs),
        choice.width > _LARGE_SIZE[0] or choice.height > _LARGE_SIZE[1],
        rate < _FLUENT_RATE and not same_rate(rate, _FLUENT_RATE),
        _distance(choice, *_USUAL_SIZE),
        abs(rate - _USUAL_RATE),
        _cost(choice, rate),
        _ORDER.index(choice.fourcc),
    )


def _distance(choice: Choice, width: int | None, height: int | None) -> int:
    across = 0 if width is None else abs(choice.width - width)
    down = 0 if height is None else abs(choice.height - height)
    return across + down


def _cost(choice: Choice, rate: float) -> int:
    if choice.fourcc in _COMPRESSED:
        return 1
    raw = choice.width * choice.height * _BYTES[choice.fourcc] * rate
    return 2 if raw > _USB2_BYTES else 0


def _not_offered(decoded: Sequence[Offer], wanted: Wanted) -> str:
    alike: dict[str, list[str]] = {}
    for offer in sorted(decoded, key=lambda offer: min(_misses(offer, wanted))):
        alike.setdefault(_offered(offer), []).append(offer.fourcc)
    listed = [f"{'/'.join(fourccs)} {offered}" for offered, fourccs in alike.items()]
    more = [f"and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    return (
        f"the camera has no {wanted}. Nearest first, it offers "
        f"{'; '.join(listed[:_LISTED] + more)}: ask for one of these, or leave a part out"
    )


def _misses(offer: Offer, wanted: Wanted) -> Iterator[tuple[float, ...]]:
    for choice in _choices(offer, wanted):
        rate = abs((choice.rate or 0) - wanted.frame_rate) if wanted.frame_rate else 0
        missed = _distance(choice, wanted.width, wanted.height)
        yield choice.unmet(wanted), missed, rate, *_reluctance(choice)


def _undecoded(formats: Sequence[Offer], decoded: Sequence[Offer], wanted: Wanted) -> str:
    if not formats:
        return "the camera offers no format at all: unplug it and plug it in again"
    if decoded:
        others = ", ".join(dict.fromkeys(offer.fourcc for offer in decoded))
        return (
            f'the camera has {wanted.fourcc}, but the model "webcam" cannot decode it: use the '
            f'model "ffmpeg", or ask for {others}'
        )
    only = ", ".join(dict.fromkeys(offer.fourcc for offer in formats))
    return (
        f'the camera offers only {only}, which the model "webcam" cannot decode: use the model '
        '"ffmpeg", or a module made for this camera'
    )


def _offered(offer: Offer) -> str:
    if isinstance(offer, Format):
        rates = ", ".join(map(_shown, offer.rates))
        return _words(f"{offer.width}x{offer.height}", rates)
    return _words(_sizes(offer), _ends(offer))


def _sizes(offer: FormatRange) -> str:
    widths, heights = offer.widths, offer.heights
    least, most = f"{widths.least}x{heights.least}", f"{widths.most}x{heights.most}"
    if least == most:
        return least
    steps = f" in steps of {widths.step}x{heights.step}"
    return f"{least} to {most}{steps if (widths.step, heights.step) != (1, 1) else ''}"


def _ends(offer: FormatRange) -> str:
    return "" if offer.rates is None else " to ".join(map(_shown, offer.rates))


def _words(*parts: str) -> str:
    """The last part is how many a second."""
    *what, rate = parts
    return " ".join(part for part in (*what, rate and f"at {rate}") if part)


def _shown(rate: float | None) -> str:
    return "" if rate is None else f"{rate:g}"
