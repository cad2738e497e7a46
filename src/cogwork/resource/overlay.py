"""What was found, drawn on a copy of the picture it was found in."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from cogwork.resource.image import Pixels

_COLOURS = (
    (80, 80, 255),
    (90, 200, 60),
    (255, 150, 40),
    (30, 190, 255),
    (230, 90, 200),
    (210, 210, 50),
    (130, 110, 255),
    (60, 150, 150),
)
"""Blue, green, red; told apart on a grey machine."""
_INK = (255, 255, 255)
_LONGEST_LABEL = 60
_FONT = cv2.FONT_HERSHEY_SIMPLEX


class Boxed(NamedTuple):
    """In pixels."""

    label: str
    confidence: float
    x_min: int
    y_min: int
    x_max: int
    y_max: int


def with_boxes(pixels: Pixels, boxes: Sequence[Boxed]) -> Pixels:
    drawn = pixels.copy()
    width = max(1, round(min(pixels.shape[:2]) / 240))
    for each in boxes:
        colour = colour_of(each.label)
        first, last = (
            _within(pixels, each.x_min, each.y_min),
            _within(pixels, each.x_max, each.y_max),
        )
        cv2.rectangle(drawn, first, last, colour, width, cv2.LINE_AA)
        _tag(drawn, _words(each.label, each.confidence), *first, colour)
    return drawn


def with_labels(pixels: Pixels, labels: Sequence[tuple[str, float]]) -> Pixels:
    """One below the other, in the upper left corner."""
    drawn = pixels.copy()
    for number, (label, confidence) in enumerate(labels):
        _tag(drawn, _words(label, confidence), 30, 30 + 30 * number, colour_of(label))
    return drawn


def colour_of(label: str) -> tuple[int, int, int]:
    """The same for a label each time."""
    return _COLOURS[zlib.crc32(label.encode()) % len(_COLOURS)]


def _within(pixels: Pixels, x: int, y: int) -> tuple[int, int]:
    """OpenCV takes no number of 64 bits, and services of others give any."""
    return min(max(x, 0), pixels.shape[1] - 1), min(max(y, 0), pixels.shape[0] - 1)


def _words(label: str, confidence: float) -> str:
    return f"{label[:_LONGEST_LABEL]}: {confidence:.2f}"


def _tag(drawn: Pixels, text: str, x: int, y: int, colour: tuple[int, int, int]) -> None:
    """Above the point, or below it where there is no room."""
    scale = max(0.4, min(drawn.shape[:2]) / 1000)
    line = max(1, round(scale * 1.6))
    (wide, high), below = cv2.getTextSize(text, _FONT, scale, line)
    x = int(np.clip(x, 0, max(0, drawn.shape[1] - wide - 4)))
    top = y - high - below - 4
    top = top if top >= 0 else y
    cv2.rectangle(drawn, (x, top), (x + wide + 4, top + high + below + 4), colour, cv2.FILLED)
    cv2.putText(drawn, text, (x + 2, top + high + 2), _FONT, scale, _INK, line, cv2.LINE_AA)
