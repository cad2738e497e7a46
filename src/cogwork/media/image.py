"""Image encoding and decoding with OpenCV.

These functions are slow: call them in a thread. Pixels have OpenCV's layout: height x width x
(blue, green, red) with 8 bits, or height x width with 16-bit millimeters. Another channel order
would cost a pass over every image that is encoded.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import CogworkError
from cogwork.media.image_header import (
    DEPTH,
    JPEG,
    PNG,
    RGBA,
    BadImage,
    ImageHeader,
    iter_png_chunks,
    read_header,
)

Pixels = NDArray[Any]
"""Color (three dimensions, 8 bits) or depth (two dimensions, 16 bits)."""

COLOR_TYPES = (JPEG, PNG, RGBA)
DEPTH_TYPES = (DEPTH, PNG)

_JPEG_QUALITY = 75
"""The JPEG quality that viam-server uses; a higher quality costs clients bandwidth."""
_PIXEL_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND"})
_SAFE_SIZE = 2 * 1024 * 1024
"""Size in bytes up to which any image is decompressed within a few seconds. Only larger images are
checked before decoding, because the check adds half the decoding time."""

# Errors about corrupt images are raised to the caller, so OpenCV does not log them.
cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


class NoSuchEncoding(CogworkError, ValueError):
    """An image cannot be encoded as the requested MIME type."""

    status = "INVALID_ARGUMENT"


def is_depth(pixels: Pixels) -> bool:
    return pixels.ndim == 2


def check_type(pixels: Pixels, mime_type: str) -> None:
    depth = is_depth(pixels)
    known = DEPTH_TYPES if depth else COLOR_TYPES
    if mime_type not in known:
        kind = "depth" if depth else "color"
        raise NoSuchEncoding(
            f'a {kind} image cannot be encoded as "{mime_type}"; request {" or ".join(known)}'
        )


def encode(pixels: Pixels, mime_type: str) -> bytes:
    check_type(pixels, mime_type)
    height, width = pixels.shape[:2]
    if mime_type == DEPTH:
        return struct.pack(">8sQQ", b"DEPTHMAP", width, height) + pixels.astype(">u2").tobytes()
    if mime_type == RGBA:
        rgba = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGBA)
        return b"".join((struct.pack(">4sII", b"RGBA", width, height), rgba.data))
    if mime_type == JPEG:
        return _encode_with_cv2(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY))
    return _encode_with_cv2(".png", pixels, ())


def decode(data: bytes, header: ImageHeader | None = None) -> Pixels:
    """Return the pixels as they are stored.

    The EXIF orientation is not applied, so that the coordinates of boxes match the stored pixels.
    """
    header = header or read_header(data)
    if header.mime_type == DEPTH:
        flat = np.frombuffer(data, ">u2", offset=24)
        return flat.astype(np.uint16).reshape(header.height, header.width)
    if header.mime_type == RGBA:
        rgba = np.frombuffer(data, np.uint8, offset=12).reshape(header.height, header.width, 4)
        return cv2.cvtColor(rgba, cv2.COLOR_RGBA2BGR)
    return _decode_compressed(data, header)


def decode_reduced(data: bytes, header: ImageHeader, width: int, height: int) -> Pixels:
    """Decode an image, at a reduced size if that is not smaller than the given size.

    A much larger JPEG is decoded at a half, a quarter or an eighth of its size, which takes a
    fraction of the time.
    """
    if header.mime_type != JPEG:
        return decode(data, header)
    for shrink, flags in _REDUCTIONS:
        if header.width >= shrink * width and header.height >= shrink * height:
            return _decode_with_cv2(
                data, flags, -(-header.width // shrink), -(-header.height // shrink)
            )
    return decode(data, header)


_REDUCTIONS = (
    (8, cv2.IMREAD_REDUCED_COLOR_8),
    (4, cv2.IMREAD_REDUCED_COLOR_4),
    (2, cv2.IMREAD_REDUCED_COLOR_2),
)


def _encode_with_cv2(kind: str, pixels: Pixels, options: tuple[int, ...]) -> bytes:
    done, data = cv2.imencode(kind, pixels, options)
    assert done  # on failure, OpenCV raises an error instead
    return data.tobytes()


def _decode_compressed(data: bytes, header: ImageHeader) -> Pixels:
    flags = cv2.IMREAD_ANYDEPTH if header.is_depth else cv2.IMREAD_COLOR
    if header.mime_type == PNG:
        data = _strip_chunks(data, header)
    return _decode_with_cv2(data, flags, header.width, header.height)


def _decode_with_cv2(data: bytes, flags: int, width: int, height: int) -> Pixels:
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise BadImage(f"the image is damaged: {error.err}") from error
    if pixels is None:
        raise BadImage("the image is damaged: it cannot be decoded")
    if pixels.shape[:2] != (height, width):
        raise BadImage("the image is damaged: its size differs from its header")
    return pixels


def _strip_chunks(png: bytes, header: ImageHeader) -> bytes:
    """Remove the chunks that do not contribute to the pixels.

    Texts and profiles may be compressed, and a few bytes of them can take seconds to decompress.
    The same holds for pixel data beyond the last row, so raise BadImage if there is any.
    """
    chunks, view = list(iter_png_chunks(png)), memoryview(png)
    packed = [view[start:end] for kind, start, end in chunks if kind == b"IDAT"]
    _check_compressed_size(packed, most=header.height * (header.width * 8 + 1) * 2 + 4096)
    if all(kind in _PIXEL_CHUNKS for kind, _, _ in chunks):
        return png
    kept = [view[start - 8 : end + 4] for kind, start, end in chunks if kind in _PIXEL_CHUNKS]
    return b"".join((view[:8], *kept))


def _check_compressed_size(pieces: list[memoryview], most: int) -> None:
    size = sum(map(len, pieces))
    if size > _SAFE_SIZE:
        try:
            size = max(size, _decompressed_size(pieces, most))
        except zlib.error as error:
            raise BadImage(f"the image is damaged: {error}") from error
    if size > most:
        raise BadImage("the image is damaged: it has more data than its header declares")


def _decompressed_size(pieces: list[memoryview], most: int) -> int:
    """Return the decompressed size; stop counting once it exceeds `most`."""
    decompressor, size = zlib.decompressobj(), 0
    for piece in pieces:
        for at in range(0, len(piece), 1 << 16):  # small steps: zlib copies the rest each time
            rest: bytes | memoryview = piece[at : at + (1 << 16)]
            while rest and not decompressor.eof and size <= most:
                size += len(decompressor.decompress(rest, 1 << 20))
                rest = decompressor.unconsumed_tail
    return size
