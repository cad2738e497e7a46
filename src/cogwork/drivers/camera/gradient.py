"""A color gradient that may move."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

_HUE_STEPS = 180
"""Number of hue steps of the full color wheel in OpenCV."""


def draw_gradient(width: int, height: int, step: int) -> NDArray[Any]:
    """Draw hues from left to right, darker toward the top; each step shifts the hues."""
    hues = (np.arange(width) * _HUE_STEPS // width + step * 2) % _HUE_STEPS
    hsv = np.empty((height, width, 3), np.uint8)
    hsv[..., 0] = hues
    hsv[..., 1] = 200
    hsv[..., 2] = np.linspace(90, 255, height, dtype=np.uint8)[:, None]
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
