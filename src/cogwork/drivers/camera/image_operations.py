"""Pixel operations of the transform camera. Pure functions, but slow: run them in a thread."""

from __future__ import annotations

import math

import cv2
import numpy as np

from cogwork.core.errors import InvalidRequest
from cogwork.media.image import Pixels, is_depth
from cogwork.media.image_header import MAX_PIXELS

_QUARTER_TURNS = {1: cv2.ROTATE_90_CLOCKWISE, 2: cv2.ROTATE_180, 3: cv2.ROTATE_90_COUNTERCLOCKWISE}
_RED = (0, 0, 255)
_MAX_ROTATED_SIDE = 32_766
"""Maximum side of an image that OpenCV can rotate by an angle other than a multiple of 90
degrees."""


def rotate(pixels: Pixels, degrees: float) -> Pixels:
    """Rotate clockwise. The image grows so that nothing is cut off; added corners are black."""
    quarters, rest = divmod(degrees % 360, 90)
    if not rest:
        turn = _QUARTER_TURNS.get(int(quarters))
        return cv2.rotate(pixels, turn) if turn is not None else pixels
    height, width = pixels.shape[:2]
    angle = math.radians(degrees)
    across, down = abs(math.cos(angle)), abs(math.sin(angle))
    size = (round(width * across + height * down), round(width * down + height * across))
    _check_size(*size)
    if max(*size, width, height) > _MAX_ROTATED_SIDE:
        raise InvalidRequest(
            f"an image of {width}x{height} is too large: "
            "it can only be rotated by 90, 180 or 270 degrees"
        )
    # OpenCV rotates counterclockwise.
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), -degrees, 1.0)
    matrix[:, 2] += ((size[0] - width) / 2, (size[1] - height) / 2)
    # Do not interpolate depth: the mean of a near and a far pixel is not a real distance.
    method = cv2.INTER_NEAREST if is_depth(pixels) else cv2.INTER_LINEAR
    return cv2.warpAffine(pixels, matrix, size, flags=method)


def resize(pixels: Pixels, width: int, height: int) -> Pixels:
    if pixels.shape[:2] == (height, width):
        return pixels
    _check_size(width, height)
    shrinks = width * height < pixels.shape[0] * pixels.shape[1]
    smooth = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    method = cv2.INTER_NEAREST if is_depth(pixels) else smooth
    return cv2.resize(pixels, (width, height), interpolation=method)


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise InvalidRequest(
            f"the result would be too large: {width}x{height}; the limit is "
            f"{MAX_PIXELS // 1_000_000} million pixels"
        )


def crop(
    pixels: Pixels, x_min: float, y_min: float, x_max: float, y_max: float, *, overlay: bool
) -> Pixels:
    """Crop to edges in pixels, or as fractions of the image if both maxima are at most 1."""
    height, width = pixels.shape[:2]
    if x_max <= 1 and y_max <= 1:
        x_min, x_max, y_min, y_max = x_min * width, x_max * width, y_min * height, y_max * height
    left, top = int(x_min), int(y_min)
    right, bottom = min(int(x_max), width), min(int(y_max), height)
    if left >= right or top >= bottom:
        raise InvalidRequest(
            f"the crop from ({left}, {top}) to ({int(x_max)}, {int(y_max)}) contains no pixels of "
            f"the {width}x{height} image"
        )
    if not overlay:
        return np.ascontiguousarray(pixels[top:bottom, left:right])
    if is_depth(pixels):
        return pixels  # depth image: a line would be read as a distance
    marked = pixels.copy()
    return cv2.rectangle(marked, (left, top), (right - 1, bottom - 1), _RED, 2)
