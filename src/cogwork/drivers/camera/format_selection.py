"""Selection of the pixel format, size and rate of a device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cogwork.core.errors import CogworkError
from cogwork.drivers.camera.v4l2 import FormatOffer, FormatRange, VideoFormat

FOURCC_ALIASES = {
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
"""Format names in FFmpeg, GStreamer, Windows and common use, with their names in Linux.

Other names are Linux names, in upper or lower case: `MJPG`, `YUYV`, `NV12`, `Z16`, …
"""

# Bytes per pixel of formats that OpenCV converts to BGR. Of equally good formats, the first wins.
_COLOR = {
    "YUYV": 2.0,
    "UYVY": 2.0,
    "YU12": 1.5,
    "YV12": 1.5,
    "BGR3": 3.0,
    "RGB3": 3.0,
    "XR24": 4.0,
    "AR24": 4.0,
    # These are last, because OpenCV 4.10 swaps red and blue in them.
    "NV12": 1.5,
    "NV21": 1.5,
}
_COMPRESSED = dict.fromkeys(("MJPG", "JPEG"), 0.0)
# Bayer formats have unbalanced colors, and gray formats none. Use them only if a device has no
# others.
_BAYER = dict.fromkeys(("RGGB", "BA81", "GBRG", "GRBG"), 1.0)
_GRAY = {"GREY": 1.0, "Y16": 2.0, "Y12": 2.0, "Y10": 2.0}

_TIERS = ({**_COLOR, **_COMPRESSED}, _BAYER, _GRAY)
_BYTES_PER_PIXEL = {**_COLOR, **_COMPRESSED, **_BAYER, **_GRAY}
_FOURCC_ORDER = list(_BYTES_PER_PIXEL)

_PREFERRED_SIZE = (1280, 720)
_LARGE_SIZE = (1920, 1080)
_PREFERRED_RATE = 30.0
_MIN_SMOOTH_RATE = 15.0
_USB2_BYTES_PER_SECOND = 35e6
_MAX_LISTED = 5


class NoSuchFormat(CogworkError):
    """The device does not offer the requested format."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """The requested format; None selects the best available value."""

    format: str | None = None
    width: int | None = None
    height: int | None = None
    frame_rate: float | None = None

    @property
    def fourcc(self) -> str | None:
        return None if self.format is None else normalize_fourcc(self.format)

    def __str__(self) -> str:
        return _join_parts(
            self.fourcc or "images", self._describe_size(), _format_rate(self.frame_rate)
        )

    def _describe_size(self) -> str:
        if self.width and self.height:
            return f"{self.width}x{self.height}"
        return f"{self.width} wide" if self.width else f"{self.height} high" if self.height else ""


@dataclass(frozen=True, slots=True)
class FormatChoice:
    fourcc: str
    width: int
    height: int
    rate: float | None
    """Frames per second; None if the device does not report a rate."""

    def count_unmet(self, request: FormatRequest) -> int:
        """Return how many of the requested pixel format, size and frame rate differ from this
        choice."""
        rate = request.frame_rate
        return sum(
            (
                request.fourcc not in (None, self.fourcc),
                request.width not in (None, self.width)
                or request.height not in (None, self.height),
                rate is not None and self.rate is not None and not is_same_rate(rate, self.rate),
            )
        )

    def __str__(self) -> str:
        return _join_parts(self.fourcc, f"{self.width}x{self.height}", _format_rate(self.rate))


def normalize_fourcc(name: str) -> str:
    name = name.strip().upper()
    return FOURCC_ALIASES.get(name, name)


def is_same_rate(one: float, other: float) -> bool:
    """Compare rates; 30 equals 30000/1001."""
    return math.isclose(one, other, rel_tol=0.002)


def choose_format(formats: Sequence[FormatOffer], request: FormatRequest) -> FormatChoice:
    """Return the best format that meets the request exactly, or raise NoSuchFormat.

    For what the request leaves open, prefer, in this order: color over gray, at most 1920x1080, at
    least 15 frames per second, close to 1280x720, close to 30 frames per second. If formats are
    still equal, prefer raw formats over JPEG, which costs decoding, unless the bandwidth of the raw
    format is too high for USB 2.
    """
    decoded = [offer for offer in formats if offer.fourcc in _BYTES_PER_PIXEL]
    if not decoded or (
        request.fourcc not in _BYTES_PER_PIXEL and _offers_fourcc(formats, request.fourcc)
    ):
        raise NoSuchFormat(_explain_undecodable(formats, decoded, request))
    choices = [choice for offer in decoded for choice in _possible_choices(offer, request)]
    matching = [choice for choice in choices if not choice.count_unmet(request)]
    if not matching:
        raise NoSuchFormat(_explain_not_offered(decoded, request))
    return min(matching, key=_preference_key)


def _offers_fourcc(formats: Sequence[FormatOffer], fourcc: str | None) -> bool:
    return any(offer.fourcc == fourcc for offer in formats)


def _possible_choices(offer: FormatOffer, request: FormatRequest) -> Iterator[FormatChoice]:
    if isinstance(offer, VideoFormat):
        for rate in offer.rates or (request.frame_rate,):
            yield FormatChoice(offer.fourcc, offer.width, offer.height, rate)
    else:
        yield FormatChoice(
            offer.fourcc, *_nearest_size(offer, request), _nearest_rate(offer, request)
        )


def _nearest_size(offer: FormatRange, request: FormatRequest) -> tuple[int, int]:
    """Return the size nearest to the request. If a side is open, use the default aspect ratio."""
    usual_width, usual_height = _PREFERRED_SIZE
    shape = usual_width / usual_height
    width = offer.widths.nearest(
        request.width or (request.height * shape if request.height else usual_width)
    )
    return width, offer.heights.nearest(request.height or width / shape)


def _nearest_rate(offer: FormatRange, request: FormatRequest) -> float | None:
    if offer.rates is None:
        return request.frame_rate
    slowest, fastest = offer.rates
    return min(max(request.frame_rate or _PREFERRED_RATE, slowest), fastest)


def _preference_key(choice: FormatChoice) -> tuple[float, ...]:
    rate = _PREFERRED_RATE if choice.rate is None else choice.rate
    return (
        next(tier for tier, fourccs in enumerate(_TIERS) if choice.fourcc in fourccs),
        choice.width > _LARGE_SIZE[0] or choice.height > _LARGE_SIZE[1],
        rate < _MIN_SMOOTH_RATE and not is_same_rate(rate, _MIN_SMOOTH_RATE),
        _size_distance(choice, *_PREFERRED_SIZE),
        abs(rate - _PREFERRED_RATE),
        _bandwidth_cost(choice, rate),
        _FOURCC_ORDER.index(choice.fourcc),
    )


def _size_distance(choice: FormatChoice, width: int | None, height: int | None) -> int:
    horizontal = 0 if width is None else abs(choice.width - width)
    vertical = 0 if height is None else abs(choice.height - height)
    return horizontal + vertical


def _bandwidth_cost(choice: FormatChoice, rate: float) -> int:
    if choice.fourcc in _COMPRESSED:
        return 1
    raw = choice.width * choice.height * _BYTES_PER_PIXEL[choice.fourcc] * rate
    return 2 if raw > _USB2_BYTES_PER_SECOND else 0


def _explain_not_offered(decoded: Sequence[FormatOffer], request: FormatRequest) -> str:
    by_description: dict[str, list[str]] = {}
    for offer in sorted(decoded, key=lambda offer: min(_mismatch_keys(offer, request))):
        by_description.setdefault(_describe_offer(offer), []).append(offer.fourcc)
    listed = [f"{'/'.join(fourccs)} {offered}" for offered, fourccs in by_description.items()]
    more = [f"and {len(listed) - _MAX_LISTED} more"] if len(listed) > _MAX_LISTED else []
    return (
        f"the camera does not offer {request}. The nearest formats are "
        f"{'; '.join(listed[:_MAX_LISTED] + more)}: request one of these, or omit an attribute"
    )


def _mismatch_keys(offer: FormatOffer, request: FormatRequest) -> Iterator[tuple[float, ...]]:
    for choice in _possible_choices(offer, request):
        rate = abs((choice.rate or 0) - request.frame_rate) if request.frame_rate else 0
        distance = _size_distance(choice, request.width, request.height)
        yield choice.count_unmet(request), distance, rate, *_preference_key(choice)


def _explain_undecodable(
    formats: Sequence[FormatOffer], decoded: Sequence[FormatOffer], request: FormatRequest
) -> str:
    if not formats:
        return "the camera does not offer any format: unplug it and plug it in again"
    if decoded:
        others = ", ".join(dict.fromkeys(offer.fourcc for offer in decoded))
        return (
            f'the camera offers {request.fourcc}, but the model "webcam" cannot decode it: use the '
            f'model "ffmpeg", or request {others}'
        )
    only = ", ".join(dict.fromkeys(offer.fourcc for offer in formats))
    return (
        f'the camera offers only {only}, which the model "webcam" cannot decode: use the model '
        '"ffmpeg", or a module made for this camera'
    )


def _describe_offer(offer: FormatOffer) -> str:
    if isinstance(offer, VideoFormat):
        rates = ", ".join(map(_format_rate, offer.rates))
        return _join_parts(f"{offer.width}x{offer.height}", rates)
    return _join_parts(_describe_sizes(offer), _describe_rates(offer))


def _describe_sizes(offer: FormatRange) -> str:
    widths, heights = offer.widths, offer.heights
    least, most = f"{widths.minimum}x{heights.minimum}", f"{widths.maximum}x{heights.maximum}"
    if least == most:
        return least
    steps = f" in steps of {widths.step}x{heights.step}"
    return f"{least} to {most}{steps if (widths.step, heights.step) != (1, 1) else ''}"


def _describe_rates(offer: FormatRange) -> str:
    return "" if offer.rates is None else " to ".join(map(_format_rate, offer.rates))


def _join_parts(*parts: str) -> str:
    """Join the parts with spaces; the last part is the frame rate, if known."""
    *what, rate = parts
    return " ".join(part for part in (*what, rate and f"at {rate}") if part)


def _format_rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:g}"
