"""Pixels as text for a terminal: half blocks, each of which shows two pixels in two colours."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.resource.image import Pixels, is_depth

Bytes = NDArray[np.uint8]
Kept = NDArray[np.bool_]

_HALF_BLOCK = "▀".encode()
_LINE_END = b"\x1b[0m\n"

_DIGITS = np.array([list(b"%03d" % number) for number in range(256)], np.uint8)
_SIGNIFICANT = np.array([[n > 99, n > 9, True] for n in range(256)])

_CUBE = np.array([0, 95, 135, 175, 215, 255])
"""The steps of each colour in terminals with 256 of them; the rest are greys."""
_NEAREST = np.abs(np.arange(256)[:, None] - _CUBE).argmin(1)
_FIRST_COLOUR, _FIRST_GREY, _GREYS = 16, 232, 24


def mosaic(pixels: Pixels, columns: int, rows: int, truecolor: bool) -> str:
    """As large as fits into so many cells; lines without an end behind the last."""
    shown = _fitted(pixels, columns, rows)
    codes = shown[..., ::-1] if truecolor else _indexed(shown)
    kind = b"2" if truecolor else b"5"
    upper, upper_kept = _escapes(b"\x1b[38;%s" % kind, codes[0::2])
    lower, lower_kept = _escapes(b"\x1b[48;%s" % kind, codes[1::2])
    lines, width = upper.shape[:2]
    block = np.broadcast_to(np.frombuffer(_HALF_BLOCK, np.uint8), (lines, width, len(_HALF_BLOCK)))
    end = np.broadcast_to(np.frombuffer(_LINE_END, np.uint8), (lines, len(_LINE_END)))
    cells = np.concatenate((upper, lower, block), axis=2).reshape(lines, -1)
    kept = np.concatenate((upper_kept, lower_kept, np.ones(block.shape, bool)), axis=2)
    text = np.hstack((cells, end))
    every = np.hstack((kept.reshape(lines, -1), np.ones(end.shape, bool)))
    written: bytes = text[every].tobytes()
    return written.decode().removesuffix("\n")


def _fitted(pixels: Pixels, columns: int, rows: int) -> Bytes:
    """An even number of lines, blue, green and red."""
    height, width = pixels.shape[:2]
    scale = min(columns / width, 2 * rows / height)
    size = max(1, round(width * scale)), 2 * max(1, round(height * scale / 2))
    if is_depth(pixels):
        # Half of a distance and half of none would be a distance that nothing is at.
        return _coloured(cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _coloured(depth: Pixels) -> Bytes:
    """What is near is red, what is far is blue, what has no distance is black."""
    measured = depth > 0
    # A few stray distances do not take the colours from all others.
    near, far = np.percentile(depth[measured], (1, 99)) if measured.any() else (0, 0)
    farness = np.clip((depth - float(near)) / max(1.0, float(far - near)), 0, 1)
    colours = cv2.applyColorMap((255 * (1 - farness)).astype(np.uint8), cv2.COLORMAP_TURBO)
    return np.asarray(colours * measured[..., None], np.uint8)


def _indexed(colours: Bytes) -> Bytes:
    """The nearest of 256 colours."""
    steps = _NEAREST[colours]
    blue, green, red = np.moveaxis(steps, -1, 0)
    coloured = _FIRST_COLOUR + 36 * red + 6 * green + blue
    grey = np.clip(np.rint((colours.mean(-1) - 8) / 10), 0, _GREYS - 1).astype(int)
    greyness = _distance(colours, (8 + 10 * grey)[..., None])
    index = np.where(greyness < _distance(colours, _CUBE[steps]), _FIRST_GREY + grey, coloured)
    return np.asarray(index[..., None], np.uint8)


def _distance(colours: Bytes, others: NDArray[np.int_]) -> NDArray[np.int_]:
    return np.asarray(((colours - others) ** 2).sum(-1))


def _escapes(lead: bytes, codes: Bytes) -> tuple[Bytes, Kept]:
    """For each cell the sequence that sets its colour, all equally long, and which bytes of them
    are to be written: none where the colour stays as it is."""
    lines, width, numbers = codes.shape
    template = np.frombuffer(lead + numbers * b";000" + b"m", np.uint8)
    text = np.tile(template, (lines, width, 1))
    kept = np.ones(text.shape, bool)
    for number in range(numbers):
        start = len(lead) + 4 * number + 1
        text[..., start : start + 3] = _DIGITS[codes[..., number]]
        kept[..., start : start + 3] = _SIGNIFICANT[codes[..., number]]
    stays = (codes[:, 1:] == codes[:, :-1]).all(-1)
    kept[:, 1:][stays] = False
    return text, kept
