"""Colours that fill a picture, and may move."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

_TURN = 180
"""OpenCV's hues go round in this many steps."""


def gradient(width: int, height: int, step: int) -> NDArray[Any]:
    """Hues from left to right, darker towards the top; each step shifts the hues."""
    hues = (np.arange(width) * _TURN // width + step * 2) % _TURN
    hsv = np.empty((height, width, 3), np.uint8)
    hsv[..., 0] = hues
    hsv[..., 1] = 200
    hsv[..., 2] = np.linspace(90, 255, height, dtype=np.uint8)[:, None]
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
