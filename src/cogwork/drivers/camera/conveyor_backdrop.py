"""The belt below the parts of the conveyor, and the lens and sensor of the camera."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import cv2
import numpy as np

from cogwork.drivers.camera.conveyor_body import Plane
from cogwork.drivers.camera.conveyor_sprite import Uint8Image

_BELT_RESOLUTION = (424, 1280)
"""Rows and columns in which the belt is drawn before it is resized to the image."""
_RAIL_PROFILE = (60, 150, 205, 214, 208, 196, 120, 62, 54, 70, 168, 196, 190, 182, 150, 90)
"""Brightness profile of a rail, from its outer edge to the belt."""
_FULL_LIGHT = 230
"""Value in the vignette that represents full brightness."""
_VIGNETTE_SIDE = 128
_NOISE = 8
"""Maximum deviation of a pixel due to sensor noise, in gray levels."""
_NOISE_SIDE = 512
_NOISE_SHIFTS = 64


class Backdrop:
    """A belt that moves from left to right between two rails."""

    def __init__(self, rng: np.random.Generator, width: int, height: int, rail: int) -> None:
        self._width = width
        self._rail_height = rail
        self._belt_image = _draw_belt(rng, 2 * width, height - 2 * rail)
        self._rail_image = _draw_rail(rng, width, rail)

    def render(self, scroll: int) -> Uint8Image:
        """Render the belt after it has moved the given number of pixels."""
        rail, length = self._rail_height, self._belt_image.shape[1]
        image = np.empty((self._belt_image.shape[0] + 2 * rail, self._width, 3), np.uint8)
        image[:rail] = self._rail_image
        image[-rail:] = self._rail_image[::-1]
        start = -scroll % length
        first = min(self._width, length - start)
        image[rail:-rail, :first] = self._belt_image[:, start : start + first]
        image[rail:-rail, first:] = self._belt_image[:, : self._width - first]
        return image


class Exposure:
    """The exposure of an image, by a lens with vignetting and a sensor with noise."""

    def __init__(self, rng: np.random.Generator, width: int, height: int) -> None:
        self._vignette = _draw_vignette(rng, width, height)
        self._noise = _sensor_noise(rng, width + _NOISE_SHIFTS, height + _NOISE_SHIFTS)

    def apply(self, image: Uint8Image, light: float, noise_seed: int) -> None:
        """Modify the image in place; `noise_seed`, any integer, selects the noise."""
        cv2.multiply(image, self._vignette, image, light / _FULL_LIGHT)
        height, width = image.shape[:2]
        down, right = divmod(noise_seed % _NOISE_SHIFTS**2, _NOISE_SHIFTS)
        noise = self._noise[down : down + height, right : right + width]
        cv2.addWeighted(image, 1, noise, 1, -_NOISE, image)


def _draw_belt(rng: np.random.Generator, length: int, height: int) -> Uint8Image:
    rows, columns = _BELT_RESOLUTION
    rubber = (
        1
        + 0.16 * _smooth_noise(rng, 1, 1)
        + 0.10 * _smooth_noise(rng, 4, 4)
        + 0.10 * _smooth_noise(rng, 53, 64)
    )
    rubber += 0.07 * _smooth_noise(rng, 2, 160) + 0.05 * _weave_texture(rows, columns)
    rubber *= _splice_texture(rows, columns)
    edge = np.minimum(_row_indices(rows), _row_indices(rows)[::-1])
    rubber *= 1 - 0.6 * np.exp(-edge / 9)
    color = np.array([60, 58, 55]) * rng.uniform(0.85, 1.2) * rng.uniform(0.92, 1.06, 3)
    drawn = _tint(rubber, color)
    interpolation = cv2.INTER_AREA if height < rows else cv2.INTER_CUBIC
    return cast("Uint8Image", cv2.resize(drawn, (length, height), interpolation=interpolation))


def _smooth_noise(rng: np.random.Generator, down: int, across: int) -> Plane:
    """Return noise around 0, with spots of the given size. Copies of the noise can be tiled
    horizontally."""
    rows, columns = _BELT_RESOLUTION
    spots = 2 * rng.random((rows // down, columns // across), np.float32) - 1
    wrapped = np.hstack([spots, spots[:, :2]])
    wider = columns * wrapped.shape[1] // spots.shape[1]
    smooth = cv2.resize(wrapped, (wider, rows), interpolation=cv2.INTER_LINEAR)
    start = (wider - columns) // 2
    return cast("Plane", smooth[:, start : start + columns])


def _weave_texture(rows: int, columns: int) -> Plane:
    down, across = _row_indices(rows), _column_indices(columns)
    weave: Plane = np.sin(np.pi / 4 * across) * np.sin(np.pi / 4 * down)
    return weave


def _splice_texture(rows: int, columns: int) -> Plane:
    """Return the slanted line where the ends of the belt are joined."""
    offset = _column_indices(columns) - 0.75 * columns - 0.35 * _row_indices(rows)
    groove, ridge = np.exp(-((offset / 2.2) ** 2)), np.exp(-(((offset - 4) / 1.8) ** 2))
    splice: Plane = 1 - 0.35 * groove + 0.25 * ridge
    return splice


def _row_indices(count: int) -> Plane:
    return np.arange(count, dtype=np.float32)[:, None]


def _column_indices(count: int) -> Plane:
    return np.arange(count, dtype=np.float32)[None, :]


def _draw_rail(rng: np.random.Generator, width: int, height: int) -> Uint8Image:
    profile = np.array(_RAIL_PROFILE, np.float32)[:, None]
    upright = cv2.resize(profile, (1, height), interpolation=cv2.INTER_AREA)
    brushed = upright * rng.normal(1, 0.02, (height, 1)) * rng.normal(1, 0.012, (1, width))
    return _tint(brushed.astype(np.float32), (0.94, 0.92, 0.9))


def _draw_vignette(rng: np.random.Generator, width: int, height: int) -> Uint8Image:
    down, across = (
        _row_indices(_VIGNETTE_SIDE) / _VIGNETTE_SIDE - 0.5,
        _column_indices(_VIGNETTE_SIDE) / _VIGNETTE_SIDE - 0.5,
    )
    lamp_x, lamp_y = rng.uniform(-0.15, 0.15, 2)
    light = _FULL_LIGHT * (1 - 0.7 * ((across - lamp_x) ** 2 + (down - lamp_y) ** 2))
    warmth = rng.uniform(-0.06, 0.06)
    drawn = _tint(light, (1 - warmth, 1, 1 + warmth))
    return cast("Uint8Image", cv2.resize(drawn, (width, height)))


def _sensor_noise(rng: np.random.Generator, width: int, height: int) -> Uint8Image:
    """Return noise with a triangular distribution, from 0 to twice the maximum deviation."""
    dice = rng.integers(0, _NOISE, (2, _NOISE_SIDE, _NOISE_SIDE, 3), np.uint8, endpoint=True)
    tile = dice[0] + dice[1]
    times = (math.ceil(height / _NOISE_SIDE), math.ceil(width / _NOISE_SIDE), 1)
    return np.tile(tile, times)[:height, :width]


def _tint(bright: Plane, color: Iterable[float]) -> Uint8Image:
    return np.stack([np.clip(bright * part, 0, 255).astype(np.uint8) for part in color], axis=2)
