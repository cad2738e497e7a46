"""Image headers, read without decoding the pixels.

The type is detected from the data, because the SDK declares every image as `image/jpeg`. The header
is checked before memory is allocated, so that a few bytes cannot claim gigabytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cogwork.core.errors import CogworkError

JPEG = "image/jpeg"
PNG = "image/png"
RGBA = "image/vnd.viam.rgba"
DEPTH = "image/vnd.viam.dep"
PCD = "pointcloud/pcd"

MAX_PIXELS = 36_000_000
"""Maximum pixels of an image: 8K cinema has 35 million. Decoding that many takes up to 400 MB."""
MAX_BYTES = 256 * 1024 * 1024
_MAX_SIDE = 65_500
"""The longest side that a JPEG can have."""
_MAX_SCANS = 100
_MAX_SCANNED_PIXELS = 500_000_000
"""Maximum product of pixels and scans. Each scan of a progressive JPEG costs as much as decoding a
whole image; real files have about ten."""
_MAX_SEGMENTS = 1000
_MAX_CHUNKS = 100_000
_STRIDE = 1 << 20
"""Maximum bytes per search: a search holds the GIL, so all other threads wait."""
_OTHER_FORMATS = {
    b"GIF8": "a GIF",
    b"BM": "a BMP",
    b"RIFF": "a WebP",
    b"II*\0": "a TIFF",
    b"MM\0*": "a TIFF",
    b"qoif": "a QOI",
    b"\0\0\0": "a HEIC, an AVIF or a video",
    b"%PDF": "a PDF",
    b"<": "text",
    b"{": "text",
}
_PEEK_SIZE = 256 * 1024
"""Bytes to search for the size, because a thumbnail and EXIF data may precede it."""
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAYSCALE = 0


class BadImage(CogworkError, ValueError):
    """The data is not a supported image."""

    status = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class ImageHeader:
    mime_type: str
    width: int
    height: int
    is_depth: bool = False
    """Whether the pixels are distances in millimeters instead of colors."""


def read_header(data: bytes) -> ImageHeader:
    """Read the header of an image. Raise BadImage if the data is not a supported image, is
    truncated or is too large to decode.

    The time grows with the size of the data: call this function in a thread.
    """
    if len(data) > MAX_BYTES:
        raise BadImage(f"the image is too large: {len(data)} bytes; the limit is {MAX_BYTES} bytes")
    if data.startswith(b"\xff\xd8"):
        header = _read_jpeg_header(data)
    elif data.startswith(_PNG_SIGNATURE):
        header = _read_png_header(data)
    elif data.startswith(b"RGBA"):
        header = _read_raw_header(data, RGBA, ">4xII", 4)
    elif data.startswith(b"DEPTHMAP"):
        header = _read_raw_header(data, DEPTH, ">8xQQ", 2)
    else:
        raise BadImage(_describe_unknown(data))
    return header


def _check_dimensions(mime_type: str, width: int, height: int) -> None:
    if not width or not height:
        raise BadImage(f"the image is empty: its header declares {width}x{height} pixels")
    if width * height > MAX_PIXELS or max(width, height) > _MAX_SIDE:
        raise BadImage(
            f"the image is too large: {width}x{height} ({mime_type}); the limit is "
            f"{MAX_PIXELS // 1_000_000} million pixels, and {_MAX_SIDE} per side; "
            "scale it down first"
        )


def peek_size(data: bytes) -> tuple[int, int] | None:
    """Return the declared width and height without checking them. Fast for any data."""
    start = data[:_PEEK_SIZE]
    if start.startswith(_PNG_SIGNATURE) and len(start) >= 24:
        width, height = struct.unpack_from(">II", start, 16)
        return width, height
    if start.startswith(b"RGBA") and len(start) >= 12:
        width, height = struct.unpack_from(">II", start, 4)
        return width, height
    if not start.startswith(b"\xff\xd8"):
        return None
    try:
        for marker, at, end in _iter_segments(start):
            if marker in _FRAME_MARKERS and end - at >= 6 and at + 5 <= len(start):
                height, width = struct.unpack_from(">HH", start, at + 1)
                return width, height
    except BadImage:
        pass
    return None


def _read_jpeg_header(data: bytes) -> ImageHeader:
    for marker, start, end in _iter_segments(data):
        if marker in _FRAME_MARKERS:
            if end - start < 6 or end > len(data):
                raise _truncated_error("JPEG")
            height, width = struct.unpack_from(">HH", data, start + 1)
            _check_dimensions(JPEG, width, height)
            _check_scans(data, end, width * height)
            if not _has_end_marker(data, end):
                raise _truncated_error("JPEG")
            return ImageHeader(JPEG, width, height)
    raise _truncated_error("JPEG")


def _check_scans(data: bytes, at: int, pixels: int) -> None:
    most = min(_MAX_SCANS, _MAX_SCANNED_PIXELS // pixels)
    strides = range(at, len(data), _STRIDE)
    # First check an upper bound. It is fast, but also counts matches in comments and after the
    # image.
    if sum(data.count(_SCAN, each, each + _STRIDE + 1) for each in strides) <= most:
        return
    scans = 0
    for marker, _, _ in _iter_segments(data, at):
        if marker == _END_MARKER:
            return
        scans += marker == _SCAN_MARKER
        if scans > most:
            raise BadImage(
                f"the JPEG has more than {most} scans, the limit for an image of this size"
            )


def _has_end_marker(data: bytes, start: int) -> bool:
    strides = range(len(data), start, -_STRIDE)
    return any(data.rfind(_END, max(start, each - _STRIDE - 1), each) >= 0 for each in strides)


_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
_SCAN, _SCAN_MARKER = b"\xff\xda", 0xDA
_END, _END_MARKER = b"\xff\xd9", 0xD9
_FILL_BYTES = re.compile(rb"\xff+")
_NEXT_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


def _iter_segments(data: bytes, at: int = 2) -> Iterator[tuple[int, int, int]]:
    """Yield each marker with the start and end of its content."""
    for _ in range(_MAX_SEGMENTS):
        if at + 4 > len(data):
            return
        if data[at] != 0xFF:
            raise BadImage(f"the JPEG is damaged at byte {at}: a segment was expected there")
        marker = data[at + 1]
        if fill := _FILL_BYTES.match(data, at + 1, at + _STRIDE):
            at = fill.end() - 1
        elif marker in _STANDALONE_MARKERS:
            at += 2
        else:
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
            yield marker, at + 4, end
            at = max(end, at + 4)
            if marker == _SCAN_MARKER:
                found = _NEXT_MARKER.search(data, at)
                at = found.start() if found else len(data)
    raise BadImage(f"the JPEG is damaged: it has more than {_MAX_SEGMENTS} segments")


def _read_png_header(data: bytes) -> ImageHeader:
    if len(data) < 33 or data[12:16] != b"IHDR":
        raise _truncated_error("PNG")
    width, height, bits, color_type = struct.unpack_from(">IIBB", data, 16)
    _check_dimensions(PNG, width, height)
    for _ in iter_png_chunks(data):
        pass  # raises if a chunk is truncated
    return ImageHeader(PNG, width, height, is_depth=bits == 16 and color_type == _GRAYSCALE)


def iter_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type of each chunk with the start and end of its content."""
    at = len(_PNG_SIGNATURE)
    for _ in range(_MAX_CHUNKS):
        length, kind = data[at : at + 4], data[at + 4 : at + 8]
        start = at + 8
        end = start + int.from_bytes(length, "big")
        at = end + 4  # skips the checksum
        if at > len(data):
            raise _truncated_error("PNG")
        yield kind, start, end
        if kind == b"IEND":
            return
    raise BadImage(f"the PNG is damaged: it has more than {_MAX_CHUNKS} chunks")


def _read_raw_header(data: bytes, mime_type: str, header: str, pixel: int) -> ImageHeader:
    size = struct.calcsize(header)
    if len(data) < size:
        raise _truncated_error(mime_type)
    width, height = struct.unpack_from(header, data)
    _check_dimensions(mime_type, width, height)
    expected = size + width * height * pixel
    if len(data) != expected:
        raise BadImage(
            f"the image ({mime_type}) declares {width}x{height} pixels, which take {expected} "
            f"bytes, but has {len(data)}"
        )
    return ImageHeader(mime_type, width, height, is_depth=mime_type == DEPTH)


def _truncated_error(kind: str) -> BadImage:
    return BadImage(f"the image is truncated: it begins like a {kind} file but ends early")


def _describe_unknown(data: bytes) -> str:
    if not data:
        return "the image is empty: it has no data"
    for start, kind in _OTHER_FORMATS.items():
        if data.startswith(start):
            return f"the image appears to be {kind}; use JPEG or PNG"
    return f"the image is not a JPEG or PNG (the data begins with {data[:4].hex(' ')})"
