"""Draw detections and classifications on a copy of an image."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np

from cogwork.media.image import Pixels

if TYPE_CHECKING:
    from viam.proto.service.vision import Classification, Detection

_COLORS = (
    (80, 80, 255),
    (90, 200, 60),
    (255, 150, 40),
    (30, 190, 255),
    (230, 90, 200),
    (210, 210, 50),
    (130, 110, 255),
    (60, 150, 150),
)
"""Blue, green and red values that are easy to distinguish on gray machinery."""
_TEXT_COLOR = (0, 0, 0)
"""Black, because white has too little contrast to most of the label colors."""
_MIN_SCALE = 0.45
_SCALE_PER_PIXEL = 1 / 750
"""Scale of the font per pixel of the image's shorter side. Labels stay readable when a page shows
the image at half size."""
_PADDING = 3
_MAX_LABEL_LENGTH = 60
_FONT = cv2.FONT_HERSHEY_SIMPLEX


def draw_boxes(pixels: Pixels, detections: Sequence[Detection]) -> Pixels:
    drawn = pixels.copy()
    width = max(1, round(min(pixels.shape[:2]) / 240))
    for each in detections:
        label = each.class_name
        color = label_color(label)
        first, last = (
            _clamp(pixels, each.x_min, each.y_min),
            _clamp(pixels, each.x_max, each.y_max),
        )
        cv2.rectangle(drawn, first, last, color, width, cv2.LINE_AA)
        _draw_tag(drawn, _format_label(label, each.confidence), *first, color)
    return drawn


def draw_labels(pixels: Pixels, classifications: Sequence[Classification]) -> Pixels:
    """Draw the labels below each other in the upper left corner."""
    drawn = pixels.copy()
    bottom = 0
    for each in classifications:
        text = _format_label(each.class_name, each.confidence)
        bottom = _draw_tag(drawn, text, 0, bottom, label_color(each.class_name), below=True)
    return drawn


def label_color(label: str) -> tuple[int, int, int]:
    """Return a color that is always the same for a label."""
    return _COLORS[zlib.crc32(label.encode()) % len(_COLORS)]


def _clamp(pixels: Pixels, x: int, y: int) -> tuple[int, int]:
    """Clamp a point to the image: services may return numbers of any size, but OpenCV rejects
    64-bit numbers."""
    return min(max(x, 0), pixels.shape[1] - 1), min(max(y, 0), pixels.shape[0] - 1)


def _format_label(label: str, confidence: float) -> str:
    return f"{label[:_MAX_LABEL_LENGTH]}: {confidence:.2f}"


def _draw_tag(
    drawn: Pixels, text: str, x: int, y: int, color: tuple[int, int, int], *, below: bool = False
) -> int:
    """Draw a label above the point, or below it if there is no room, and return its lower edge."""
    scale = max(_MIN_SCALE, min(drawn.shape[:2]) * _SCALE_PER_PIXEL)
    line = max(1, round(scale * 1.6))
    (wide, _), _ = cv2.getTextSize(text, _FONT, scale, line)
    # Use the same height for every text, with or without descenders.
    (_, high), descent = cv2.getTextSize("bg", _FONT, scale, line)
    width, height = wide + 2 * _PADDING, high + descent + 2 * _PADDING
    x = int(np.clip(x, 0, max(0, drawn.shape[1] - width)))
    top = y if below or y < height else y - height
    cv2.rectangle(drawn, (x, top), (x + width, top + height), color, cv2.FILLED)
    origin = (x + _PADDING, top + _PADDING + high)
    cv2.putText(drawn, text, origin, _FONT, scale, _TEXT_COLOR, line, cv2.LINE_AA)
    return top + height
