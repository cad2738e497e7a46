"""Patches of one colour in a picture. Pure, and slow enough for a thread."""

from __future__ import annotations

import colorsys
from typing import NamedTuple

import cv2
import numpy as np

from cogwork.drivers.vision.candidates import Candidates
from cogwork.resource.image import Pixels

_TURN = 180
"""OpenCV's hues go round in this many steps."""
_PLAIN = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
_HUES = (0, 30, 60, 120, 180, 240, 280, 330)


class Colour(NamedTuple):
    """All from 0 to 1."""

    hue: float
    tolerance: float
    least_saturation: float
    least_value: float


def hue_of(text: str) -> float | None:
    """Of `#rrggbb`; None for a shade of grey."""
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hsv(red, green, blue)[0] if len({red, green, blue}) > 1 else None


def plain_name(hue: float) -> str:
    degrees = hue * 360
    distances = [min(abs(degrees - each), 360 - abs(degrees - each)) for each in _HUES]
    return _PLAIN[int(np.argmin(distances))]


def patches(pixels: Pixels, colour: Colour, least_size: int) -> Candidates:
    """A box around each patch; the larger its share of the box, the surer."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV)
    # Round the circle: what lies between two hues is what is near the middle of them.
    away = np.abs(hsv[..., 0].astype(np.int16) - round(colour.hue * _TURN) % _TURN)
    near = np.minimum(away, _TURN - away) <= colour.tolerance * _TURN
    strong = hsv[..., 1] >= colour.least_saturation * 255
    bright = hsv[..., 2] >= colour.least_value * 255
    mask = (near & strong & bright).astype(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    found = stats[1:]  # the first is what is in none
    found = found[found[:, cv2.CC_STAT_AREA] >= least_size]
    left, top, wide, high, area = (found[:, column].astype(np.float32) for column in range(5))
    height, width = pixels.shape[:2]
    boxes = np.stack(
        (left / width, top / height, (left + wide) / width, (top + high) / height), axis=1
    )
    scores = area / (wide * high)
    order = np.argsort(-area, kind="stable")
    return Candidates(
        boxes[order].astype(np.float32),
        scores[order].astype(np.float32),
        np.zeros(len(order), np.int64),
    )
