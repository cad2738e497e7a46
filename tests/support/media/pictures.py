"""Handmade images that no library would write."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.gradient import draw_gradient

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
_LAST_PASS = (0, 1, 1, 2)


def color_image(width: int = 96, height: int = 64, step: int = 0) -> NDArray[np.uint8]:
    return draw_gradient(width, height, step)


def depth_image(width: int = 96, height: int = 64) -> NDArray[np.uint16]:
    """Return a depth image in which every value is different."""
    return np.arange(1, width * height + 1, dtype=np.uint16).reshape(height, width)


def encode_pixels(kind: str, pixels: NDArray[Any], *options: int) -> bytes:
    """Encode the pixels with OpenCV."""
    done, data = cv2.imencode(kind, pixels, options)
    assert done
    return data.tobytes()


def progressive(pixels: NDArray[Any]) -> bytes:
    return encode_pixels(".jpg", pixels, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int,
    height: int,
    bits: int = 8,
    kind: int = 2,
    *,
    rows: bytes | None = None,
    extra: bytes = b"",
    interlaced: bool = False,
) -> bytes:
    """Return a PNG of zeros, unless the rows (each with its filter byte) are given."""
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced)
    if rows is not None:
        data = zlib.compress(rows)
    else:
        data = packed_zeros(_size(width, height, bits * _CHANNELS[kind], interlaced))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            extra,
            chunk(b"IDAT", data),
            chunk(b"IEND", b""),
        )
    )


def _size(width: int, height: int, bits: int, interlaced: bool) -> int:
    passes = (*_ADAM7, _LAST_PASS) if interlaced else ((0, 0, 1, 1),)
    total = 0
    for left, top, across, down in passes:
        wide, high = -(-(width - left) // across), -(-(height - top) // down)
        if wide > 0 and high > 0:
            total += (1 + (wide * bits + 7) // 8) * high
    return total


def packed_zeros(size: int) -> bytes:
    """Compress zeros as zlib would, but fast."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = zlib.compress(bytes(size % (1 << 20)), 9, wbits=-15)
    return b"".join(
        (b"\x78\xda", block * (size >> 20), rest, struct.pack(">I", size % 65521 << 16 | 1))
    )


def segment(marker: int, data: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(
    width: int, height: int, levels: tuple[int, ...], *, progressive: bool = False, scans: int = 1
) -> bytes:
    """Return a JPEG with one level (0 to 255) for each component."""
    parts = [b"\xff\xd8"]
    if len(levels) == 4:
        parts.append(segment(0xEE, b"Adobe\0\x64\0\0\0\0\0"))  # plain CMYK, no transform
    parts.append(segment(0xDB, b"\0" + b"\x08" + b"\x01" * 63))
    frame = struct.pack(">BHHB", 8, height, width, len(levels))
    frame += b"".join(bytes((number, 0x11, 0)) for number in range(len(levels)))
    parts.append(segment(0xC2 if progressive else 0xC0, frame))
    # Differences of 0 ("0") and of 7 bits ("10"); blocks without waves ("0").
    parts.append(segment(0xC4, b"\0" + b"\1\1" + bytes(14) + b"\0\7"))
    parts.append(segment(0xC4, b"\x10" + b"\1" + bytes(15) + b"\0"))
    head = bytes((len(levels),)) + b"".join(bytes((n, 0)) for n in range(len(levels)))
    head += b"\0\0\0" if progressive else b"\0\x3f\0"
    blocks = -(-width // 8) * -(-height // 8)
    parts += [segment(0xDA, head), _entropy(levels, blocks, waves=not progressive)]
    for number in range(1, scans):
        # One end-of-block code for each block, component by component.
        each = number % len(levels)
        parts += [segment(0xDA, bytes((1, each, 0, 1, 63, 0))), bytes(-(-blocks // 8))]
    parts.append(b"\xff\xd9")
    return b"".join(parts)


def _entropy(levels: tuple[int, ...], blocks: int, *, waves: bool) -> bytes:
    bits = ""
    for level in levels:
        value = level - 128  # a step of 8 on what is eight times the level
        if 64 <= abs(value) < 128:
            bits += "10" + format(value if value > 0 else value + 127, "07b")
        else:
            assert value == 0, "a level of 128, or one far from it"
            bits += "0"
        bits += "0" if waves else ""
    rest = (blocks - 1) * len(levels) * (2 if waves else 1)
    bits += "0" * min(rest, -len(bits) % 8)
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return data + bytes(-(-rest // 8))


def with_scans(data: bytes, count: int) -> bytes:
    """Return a progressive JPEG whose last scan is repeated."""
    start = data.rindex(b"\xff\xda")
    scan = data[start:-2]
    return data[:start] + scan * (count - data.count(b"\xff\xda") + 1) + b"\xff\xd9"


def with_exif(data: bytes, *, orientation: int = 1, thumbnail: bytes = b"") -> bytes:
    """Return a JPEG with EXIF data, as phones write it."""
    first = b"\0\1" + struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)
    at = 8 + len(first) + 4
    pointers = b"\0\2" + struct.pack(">HHII", 0x0201, 4, 1, at + 30)
    pointers += struct.pack(">HHII", 0x0202, 4, 1, len(thumbnail)) + bytes(4)
    body = b"MM\0*\0\0\0\x08" + first + struct.pack(">I", at) + pointers + thumbnail
    return data[:2] + segment(0xE1, b"Exif\0\0" + body) + data[2:]


def with_claimed_size(data: bytes, width: int, height: int) -> bytes:
    """Return the same image with another size in its header."""
    if data.startswith(b"\x89PNG"):
        header = struct.pack(">II", width, height) + data[24:29]
        return data[:8] + chunk(b"IHDR", header) + data[33:]
    found = re.search(rb"\xff[\xc0-\xc2]\0.\x08", data, re.DOTALL)
    assert found
    return data[: found.end()] + struct.pack(">HH", height, width) + data[found.end() + 4 :]


def _overfull() -> bytes:
    whole = png(640, 480)
    return whole[:33] + chunk(b"IDAT", packed_zeros(1 << 32)) + whole[-12:]


def _texts() -> bytes:
    text = chunk(b"zTXt", b"key\0\0" + packed_zeros(7_900_000))
    return png(64, 64, extra=text * 1000)[:-20]


BAD_PICTURES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it has no data"),
    "cut off": (lambda: encode_pixels(".jpg", color_image())[:-40], "is truncated"),
    "cut off PNG": (lambda: encode_pixels(".png", color_image())[:-40], "is truncated"),
    "no size": (lambda: with_claimed_size(png(5, 7), 0, 0), "is empty"),
    "65500x65500": (
        lambda: with_claimed_size(encode_pixels(".jpg", color_image()), 65_500, 65_500),
        "too large",
    ),
    "65535 wide": (
        lambda: with_claimed_size(encode_pixels(".jpg", color_image()), 65_535, 1),
        "too large",
    ),
    "20000x20000": (lambda: png(20_000, 20_000), "too large"),
    "little behind it": (
        lambda: with_claimed_size(encode_pixels(".png", color_image()), 6000, 6000),
        "is damaged",
    ),
    "overfull": (_overfull, "more data than its header"),
    "packed texts": (_texts, "is truncated"),
    "raw": (lambda: b"RGBA" + b"\xff" * 8, "too large"),
    "raw depth": (lambda: b"DEPTHMAP" + bytes(7) + b"\5" + bytes(7) + b"\5", "take 74 bytes"),
    "1000 scans": (lambda: with_scans(progressive(color_image()), 1000), "scans"),
    "GIF": (lambda: b"GIF89a", "a GIF"),
    "WebP": (lambda: b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP"),
    "PDF": (lambda: b"%PDF-1.7", "a PDF"),
    "text": (lambda: b"<html>404</html>", "text"),
    "video": (lambda: bytes(10_000_000), "a video"),
    "filling": (lambda: b"\xff\xd8" + b"\xff" * 50_000_000, "truncated"),
    "empty segments": (
        lambda: b"\xff\xd8" + b"\xff\xe0\0\2" * 10_000_000,
        "more than 1000 segments",
    ),
}
"""What makes each, and words of what is said about it."""
