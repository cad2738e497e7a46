"""Render images as terminal text: half blocks that show two pixels in two colors each."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.media.image import Pixels, is_depth

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_HALF_BLOCK = "▀".encode()
_LINE_END = b"\x1b[0m\n"

_DIGITS = np.array([list(b"%03d" % number) for number in range(256)], np.uint8)
_SIGNIFICANT_DIGITS = np.array([[n > 99, n > 9, True] for n in range(256)])

_COLOR_CUBE = np.array([0, 95, 135, 175, 215, 255])
"""Levels of each channel in the 256-color palette; the other colors are grays."""
_NEAREST_STEP = np.abs(np.arange(256)[:, None] - _COLOR_CUBE).argmin(1)
_FIRST_COLOR, _FIRST_GRAY, _GRAY_COUNT = 16, 232, 24


def render_ansi(pixels: Pixels, columns: int, rows: int, truecolor: bool) -> str:
    """Render an image as large as fits into the cells, without a final line feed."""
    shown = _resize_to_fit(pixels, columns, rows)
    codes = shown[..., ::-1] if truecolor else _to_palette(shown)
    kind = b"2" if truecolor else b"5"
    upper, upper_kept = _build_escapes(b"\x1b[38;%s" % kind, codes[0::2])
    lower, lower_kept = _build_escapes(b"\x1b[48;%s" % kind, codes[1::2])
    lines, width = upper.shape[:2]
    block = np.broadcast_to(np.frombuffer(_HALF_BLOCK, np.uint8), (lines, width, len(_HALF_BLOCK)))
    end = np.broadcast_to(np.frombuffer(_LINE_END, np.uint8), (lines, len(_LINE_END)))
    cells = np.concatenate((upper, lower, block), axis=2).reshape(lines, -1)
    kept = np.concatenate((upper_kept, lower_kept, np.ones(block.shape, bool)), axis=2)
    text = np.hstack((cells, end))
    every = np.hstack((kept.reshape(lines, -1), np.ones(end.shape, bool)))
    written: bytes = text[every].tobytes()
    return written.decode().removesuffix("\n")


def _resize_to_fit(pixels: Pixels, columns: int, rows: int) -> Bytes:
    """Return BGR pixels with an even number of rows."""
    height, width = pixels.shape[:2]
    scale = min(columns / width, 2 * rows / height)
    size = max(1, round(width * scale)), 2 * max(1, round(height * scale / 2))
    if is_depth(pixels):
        # Interpolation between a distance and a missing distance would invent a distance.
        return _colorize_depth(cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _colorize_depth(depth: Pixels) -> Bytes:
    """Color near pixels red, far pixels blue, and pixels without a distance black."""
    measured = depth > 0
    # Percentiles, so that a few outliers do not use up the color range.
    near, far = np.percentile(depth[measured], (1, 99)) if measured.any() else (0, 0)
    farness = np.clip((depth - float(near)) / max(1.0, float(far - near)), 0, 1)
    colors = cv2.applyColorMap((255 * (1 - farness)).astype(np.uint8), cv2.COLORMAP_TURBO)
    return np.asarray(colors * measured[..., None], np.uint8)


def _to_palette(colors: Bytes) -> Bytes:
    """Return the nearest of the 256 palette colors."""
    steps = _NEAREST_STEP[colors]
    blue, green, red = np.moveaxis(steps, -1, 0)
    colored = _FIRST_COLOR + 36 * red + 6 * green + blue
    gray = np.clip(np.rint((colors.mean(-1) - 8) / 10), 0, _GRAY_COUNT - 1).astype(int)
    gray_distance = _color_distance(colors, (8 + 10 * gray)[..., None])
    index = np.where(
        gray_distance < _color_distance(colors, _COLOR_CUBE[steps]), _FIRST_GRAY + gray, colored
    )
    return np.asarray(index[..., None], np.uint8)


def _color_distance(colors: Bytes, others: NDArray[np.int_]) -> NDArray[np.int_]:
    return np.asarray(((colors - others) ** 2).sum(-1))


def _build_escapes(lead: bytes, codes: Bytes) -> tuple[Bytes, Mask]:
    """Return an escape sequence of equal length for each cell, and a mask of the bytes to write.

    No bytes are written for a cell with the color of the previous cell.
    """
    lines, width, numbers = codes.shape
    template = np.frombuffer(lead + numbers * b";000" + b"m", np.uint8)
    text = np.tile(template, (lines, width, 1))
    kept = np.ones(text.shape, bool)
    for number in range(numbers):
        start = len(lead) + 4 * number + 1
        text[..., start : start + 3] = _DIGITS[codes[..., number]]
        kept[..., start : start + 3] = _SIGNIFICANT_DIGITS[codes[..., number]]
    unchanged = (codes[:, 1:] == codes[:, :-1]).all(-1)
    kept[:, 1:][unchanged] = False
    return text, kept
