"""Images between bytes and pixels, by OpenCV. Everything here takes time: call it in a thread.

Pixels are OpenCV's own: height x width x (blue, green, red) of 8 bits, or height x width of 16-bit
millimetres. Another order would cost a pass over every picture that is encoded.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import CogworkError
from cogwork.resource.image_header import (
    DEPTH,
    JPEG,
    PNG,
    RGBA,
    BadImage,
    Header,
    png_chunks,
    read_header,
)

Pixels = NDArray[Any]
"""Colours (three dimensions, 8 bits) or depth (two dimensions, 16 bits)."""

COLOUR_TYPES = (JPEG, PNG, RGBA)
DEPTH_TYPES = (DEPTH, PNG)

_QUALITY = 75
"""As the existing server has it; what a client pays for is bytes."""
_PIXEL_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND"})
_TRUSTED = 2 * 1024 * 1024
"""Bytes that take a few seconds to unpack at worst; to look into all of them first would take
every picture half as long again."""

# What OpenCV says about damaged pictures, whoever asked for them is told.
cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


class NoSuchEncoding(CogworkError, ValueError):
    """Somebody asks for an image as something it cannot be."""

    status = "INVALID_ARGUMENT"


def is_depth(pixels: Pixels) -> bool:
    return pixels.ndim == 2


def check_type(pixels: Pixels, mime_type: str) -> None:
    depth = is_depth(pixels)
    known = DEPTH_TYPES if depth else COLOUR_TYPES
    if mime_type not in known:
        kind = "depth" if depth else "colour"
        raise NoSuchEncoding(f'{kind} cannot be "{mime_type}"; ask for {" or ".join(known)}')


def encode(pixels: Pixels, mime_type: str) -> bytes:
    check_type(pixels, mime_type)
    height, width = pixels.shape[:2]
    if mime_type == DEPTH:
        return struct.pack(">8sQQ", b"DEPTHMAP", width, height) + pixels.astype(">u2").tobytes()
    if mime_type == RGBA:
        rgba = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGBA)
        return b"".join((struct.pack(">4sII", b"RGBA", width, height), rgba.data))
    if mime_type == JPEG:
        return _written(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))
    return _written(".png", pixels, ())


def decode(data: bytes, header: Header | None = None) -> Pixels:
    """The pixels as they are stored: the orientation that a telephone notes beside them is left
    to whoever shows the picture, so that boxes fit the bytes."""
    header = header or read_header(data)
    if header.mime_type == DEPTH:
        flat = np.frombuffer(data, ">u2", offset=24)
        return flat.astype(np.uint16).reshape(header.height, header.width)
    if header.mime_type == RGBA:
        rgba = np.frombuffer(data, np.uint8, offset=12).reshape(header.height, header.width, 4)
        return cv2.cvtColor(rgba, cv2.COLOR_RGBA2BGR)
    return _read(data, header)


def decode_for(data: bytes, header: Header, width: int, height: int) -> Pixels:
    """For whoever wants no more pixels than that: a JPEG that is far larger is decoded to a half, a
    quarter or an eighth of its size, which takes a fraction of the time and leaves nothing out."""
    if header.mime_type != JPEG:
        return decode(data, header)
    for shrink, flags in _REDUCED:
        if header.width >= shrink * width and header.height >= shrink * height:
            return _decoded(data, flags, -(-header.width // shrink), -(-header.height // shrink))
    return decode(data, header)


_REDUCED = (
    (8, cv2.IMREAD_REDUCED_COLOR_8),
    (4, cv2.IMREAD_REDUCED_COLOR_4),
    (2, cv2.IMREAD_REDUCED_COLOR_2),
)


def _written(kind: str, pixels: Pixels, options: tuple[int, ...]) -> bytes:
    done, data = cv2.imencode(kind, pixels, options)
    assert done  # OpenCV raises when it cannot
    return data.tobytes()


def _read(data: bytes, header: Header) -> Pixels:
    flags = cv2.IMREAD_ANYDEPTH if header.is_depth else cv2.IMREAD_COLOR
    if header.mime_type == PNG:
        data = _bare(data, header)
    return _decoded(data, flags, header.width, header.height)


def _decoded(data: bytes, flags: int, width: int, height: int) -> Pixels:
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise BadImage(f"the image is damaged: {error.err}") from error
    if pixels is None:
        raise BadImage("the image is damaged: it begins well, and cannot be read")
    if pixels.shape[:2] != (height, width):
        raise BadImage("the image is damaged: it is not of the size that its header says")
    return pixels


def _bare(png: bytes, header: Header) -> bytes:
    """Only what makes the pixels. Texts and profiles are packed as well, and a few bytes of them
    take seconds to unpack; so do pixels that no row has room for."""
    chunks, view = list(png_chunks(png)), memoryview(png)
    packed = [view[start:end] for kind, start, end in chunks if kind == b"IDAT"]
    _judge_packed(packed, most=header.height * (header.width * 8 + 1) * 2 + 4096)
    if all(kind in _PIXEL_CHUNKS for kind, _, _ in chunks):
        return png
    kept = [view[start - 8 : end + 4] for kind, start, end in chunks if kind in _PIXEL_CHUNKS]
    return b"".join((view[:8], *kept))


def _judge_packed(pieces: list[memoryview], most: int) -> None:
    size = sum(map(len, pieces))
    if size > _TRUSTED:
        try:
            size = max(size, _unpacked_size(pieces, most))
        except zlib.error as error:
            raise BadImage(f"the image is damaged: {error}") from error
    if size > most:
        raise BadImage("the image is damaged: it holds more than its header says")


def _unpacked_size(pieces: list[memoryview], most: int) -> int:
    """Stops counting above the most."""
    unpacker, size = zlib.decompressobj(), 0
    for piece in pieces:
        for at in range(0, len(piece), 1 << 16):  # what is left of each is copied
            rest: bytes | memoryview = piece[at : at + (1 << 16)]
            while rest and not unpacker.eof and size <= most:
                size += len(unpacker.decompress(rest, 1 << 20))
                rest = unpacker.unconsumed_tail
    return size
