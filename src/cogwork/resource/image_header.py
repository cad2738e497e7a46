"""What bytes say about the image they hold, read without decoding it.

Bytes decide what an image is: the SDK calls every image `image/jpeg`. A picture is judged by its
header before anything makes room for it, so that a few bytes cannot ask for gigabytes.
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

MOST_PIXELS = 36_000_000
"""8K has 33 million, that of the cinema 35. Unpacking so many takes up to 400 MB for a moment."""
MOST_BYTES = 256 * 1024 * 1024
_LONGEST_SIDE = 65_500
"""What is longer cannot become a JPEG."""
_MOST_SCANS = 100
_MOST_SCANNED = 500_000_000
"""Pixels times scans. Each pass of a progressive JPEG costs as much as a whole picture; real ones
have ten or so."""
_MOST_SEGMENTS = 1000
_MOST_CHUNKS = 100_000
_STRIDE = 1 << 20
"""Bytes searched at a time: nothing else in the process runs meanwhile."""
_STRANGERS = {
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
_GLANCE = 256 * 1024
"""Bytes; ahead of a picture may stand a thumbnail and what a telephone notes."""
_PNG_START = b"\x89PNG\r\n\x1a\n"
_GREY = 0


class BadImage(CogworkError, ValueError):
    """Bytes that are no image we can show."""

    status = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class Header:
    mime_type: str
    width: int
    height: int
    is_depth: bool = False
    """Distances in millimetres instead of colours."""


def read_header(data: bytes) -> Header:
    """Raises BadImage for what is no image, is cut off or is too large to decode. Takes as long as
    there are bytes: call it in a thread."""
    if len(data) > MOST_BYTES:
        raise BadImage(f"the image is too large: {len(data)} bytes, at most {MOST_BYTES} are read")
    if data.startswith(b"\xff\xd8"):
        header = _jpeg(data)
    elif data.startswith(_PNG_START):
        header = _png(data)
    elif data.startswith(b"RGBA"):
        header = _raw(data, RGBA, ">4xII", 4)
    elif data.startswith(b"DEPTHMAP"):
        header = _raw(data, DEPTH, ">8xQQ", 2)
    else:
        raise BadImage(_what_it_is(data))
    return header


def _judge(mime_type: str, width: int, height: int) -> None:
    if not width or not height:
        raise BadImage(f"the image is empty: its header says {width}x{height}")
    if width * height > MOST_PIXELS or max(width, height) > _LONGEST_SIDE:
        raise BadImage(
            f"the image is too large: {width}x{height} ({mime_type}); at most "
            f"{MOST_PIXELS // 1_000_000} million pixels are read, and {_LONGEST_SIDE} a side; "
            "scale it down first"
        )


def size_at_a_glance(data: bytes) -> tuple[int, int] | None:
    """Width and height as the beginning says them, not judged. Takes no time, whatever the bytes
    are."""
    start = data[:_GLANCE]
    if start.startswith(_PNG_START) and len(start) >= 24:
        width, height = struct.unpack_from(">II", start, 16)
        return width, height
    if start.startswith(b"RGBA") and len(start) >= 12:
        width, height = struct.unpack_from(">II", start, 4)
        return width, height
    if not start.startswith(b"\xff\xd8"):
        return None
    try:
        for marker, at, end in _segments(start):
            if marker in _FRAME_MARKERS and end - at >= 6 and at + 5 <= len(start):
                height, width = struct.unpack_from(">HH", start, at + 1)
                return width, height
    except BadImage:
        pass
    return None


def _jpeg(data: bytes) -> Header:
    for marker, start, end in _segments(data):
        if marker in _FRAME_MARKERS:
            if end - start < 6 or end > len(data):
                raise _cut_off("JPEG")
            height, width = struct.unpack_from(">HH", data, start + 1)
            _judge(JPEG, width, height)
            _judge_scans(data, end, width * height)
            if not _has_end(data, end):
                raise _cut_off("JPEG")
            return Header(JPEG, width, height)
    raise _cut_off("JPEG")


def _judge_scans(data: bytes, at: int, pixels: int) -> None:
    most = min(_MOST_SCANS, _MOST_SCANNED // pixels)
    strides = range(at, len(data), _STRIDE)
    # Quickly at first, which also counts what stands in comments and behind the picture.
    if sum(data.count(_SCAN, each, each + _STRIDE + 1) for each in strides) <= most:
        return
    scans = 0
    for marker, _, _ in _segments(data, at):
        if marker == _END_MARKER:
            return
        scans += marker == _SCAN_MARKER
        if scans > most:
            raise BadImage(f"the JPEG has more than {most} scans, which no camera makes")


def _has_end(data: bytes, start: int) -> bool:
    strides = range(len(data), start, -_STRIDE)
    return any(data.rfind(_END, max(start, each - _STRIDE - 1), each) >= 0 for each in strides)


_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_SCAN, _SCAN_MARKER = b"\xff\xda", 0xDA
_END, _END_MARKER = b"\xff\xd9", 0xD9
_FILLING = re.compile(rb"\xff+")
_NEXT_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


def _segments(data: bytes, at: int = 2) -> Iterator[tuple[int, int, int]]:
    """The marker, and where its content starts and ends."""
    for _ in range(_MOST_SEGMENTS):
        if at + 4 > len(data):
            return
        if data[at] != 0xFF:
            raise BadImage(f"the JPEG is damaged at byte {at}: no segment begins there")
        marker = data[at + 1]
        if filling := _FILLING.match(data, at + 1, at + _STRIDE):
            at = filling.end() - 1
        elif marker in _STANDALONE:
            at += 2
        else:
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
            yield marker, at + 4, end
            at = max(end, at + 4)
            if marker == _SCAN_MARKER:
                found = _NEXT_MARKER.search(data, at)
                at = found.start() if found else len(data)
    raise BadImage("the JPEG is damaged: its segments do not end")


def _png(data: bytes) -> Header:
    if len(data) < 33 or data[12:16] != b"IHDR":
        raise _cut_off("PNG")
    width, height, bits, colours = struct.unpack_from(">IIBB", data, 16)
    _judge(PNG, width, height)
    for _ in png_chunks(data):
        pass  # up to the last one
    return Header(PNG, width, height, is_depth=bits == 16 and colours == _GREY)


def png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """What each is, and where its content starts and ends."""
    at = len(_PNG_START)
    for _ in range(_MOST_CHUNKS):
        length, kind = data[at : at + 4], data[at + 4 : at + 8]
        start = at + 8
        end = start + int.from_bytes(length, "big")
        at = end + 4  # behind its checksum
        if at > len(data):
            raise _cut_off("PNG")
        yield kind, start, end
        if kind == b"IEND":
            return
    raise BadImage("the PNG is damaged: its chunks do not end")


def _raw(data: bytes, mime_type: str, header: str, pixel: int) -> Header:
    size = struct.calcsize(header)
    if len(data) < size:
        raise _cut_off(mime_type)
    width, height = struct.unpack_from(header, data)
    _judge(mime_type, width, height)
    wanted = size + width * height * pixel
    if len(data) != wanted:
        raise BadImage(
            f"the image ({mime_type}) says {width}x{height}, which takes {wanted} bytes; "
            f"there are {len(data)}"
        )
    return Header(mime_type, width, height, is_depth=mime_type == DEPTH)


def _cut_off(kind: str) -> BadImage:
    return BadImage(f"the image is cut off: it begins as a {kind} and ends in the middle")


def _what_it_is(data: bytes) -> str:
    if not data:
        return "the image is empty: there are no bytes"
    for start, kind in _STRANGERS.items():
        if data.startswith(start):
            return f"the image seems to be {kind}; give a JPEG or a PNG"
    return f"the bytes are no image (they begin with {data[:4].hex(' ')}); give a JPEG or a PNG"
