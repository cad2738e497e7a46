"""What the conveyor's parts lie on, and the camera that looks at them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import cv2
import numpy as np

from cogwork.drivers.camera.conveyor_body import Plane
from cogwork.drivers.camera.conveyor_sprite import Image

_DRAWN = (424, 1280)
"""How fine the belt is drawn, rows and columns, before it is brought to the picture's size."""
_RAIL = (60, 150, 205, 214, 208, 196, 120, 62, 54, 70, 168, 196, 190, 182, 150, 90)
"""The brightness of a rail, from its outer edge to the belt."""
_LENS = 230
"""What in the lens stands for all of the light."""
_LENS_SIDE = 128
_NOISE = 8
"""How many levels up and down it goes at most."""
_NOISE_SIDE = 512
_NOISE_SHIFTS = 64


class Backdrop:
    """A belt that runs from left to right between two rails."""

    def __init__(self, rng: np.random.Generator, width: int, height: int, rail: int) -> None:
        self._width = width
        self._rail = rail
        self._belt = _belt(rng, 2 * width, height - 2 * rail)
        self._rails = _rails(rng, width, rail)

    def picture(self, scroll: int) -> Image:
        """As it is when the belt has run that many pixels."""
        rail, length = self._rail, self._belt.shape[1]
        picture = np.empty((self._belt.shape[0] + 2 * rail, self._width, 3), np.uint8)
        picture[:rail] = self._rails
        picture[-rail:] = self._rails[::-1]
        start = -scroll % length
        first = min(self._width, length - start)
        picture[rail:-rail, :first] = self._belt[:, start : start + first]
        picture[rail:-rail, first:] = self._belt[:, : self._width - first]
        return picture


class Exposure:
    """A lens that is darker toward the corners, and a sensor with noise."""

    def __init__(self, rng: np.random.Generator, width: int, height: int) -> None:
        self._lens = _lens(rng, width, height)
        self._noise = _noise(rng, width + _NOISE_SHIFTS, height + _NOISE_SHIFTS)

    def develop(self, picture: Image, light: float, grain: int) -> None:
        """Changes the picture in place; the grain, any whole number, says which noise it gets."""
        cv2.multiply(picture, self._lens, picture, light / _LENS)
        height, width = picture.shape[:2]
        down, right = divmod(grain % _NOISE_SHIFTS**2, _NOISE_SHIFTS)
        noise = self._noise[down : down + height, right : right + width]
        cv2.addWeighted(picture, 1, noise, 1, -_NOISE, picture)


def _belt(rng: np.random.Generator, length: int, height: int) -> Image:
    rows, columns = _DRAWN
    rubber = 1 + 0.16 * _cloud(rng, 1, 1) + 0.10 * _cloud(rng, 4, 4) + 0.10 * _cloud(rng, 53, 64)
    rubber += 0.07 * _cloud(rng, 2, 160) + 0.05 * _weave(rows, columns)
    rubber *= _splice(rows, columns)
    edge = np.minimum(_rows(rows), _rows(rows)[::-1])
    rubber *= 1 - 0.6 * np.exp(-edge / 9)
    color = np.array([60, 58, 55]) * rng.uniform(0.85, 1.2) * rng.uniform(0.92, 1.06, 3)
    drawn = _tinted(rubber, color)
    smoothly = cv2.INTER_AREA if height < rows else cv2.INTER_CUBIC
    return cast("Image", cv2.resize(drawn, (length, height), interpolation=smoothly))


def _cloud(rng: np.random.Generator, down: int, across: int) -> Plane:
    """Noise around 0 with spots of that size, which goes on at the right end as at the left."""
    rows, columns = _DRAWN
    spots = 2 * rng.random((rows // down, columns // across), np.float32) - 1
    around = np.hstack([spots, spots[:, :2]])
    wider = columns * around.shape[1] // spots.shape[1]
    smooth = cv2.resize(around, (wider, rows), interpolation=cv2.INTER_LINEAR)
    start = (wider - columns) // 2
    return cast("Plane", smooth[:, start : start + columns])


def _weave(rows: int, columns: int) -> Plane:
    down, across = _rows(rows), _columns(columns)
    weave: Plane = np.sin(np.pi / 4 * across) * np.sin(np.pi / 4 * down)
    return weave


def _splice(rows: int, columns: int) -> Plane:
    """Where the ends of the belt are joined: a slanted line."""
    off = _columns(columns) - 0.75 * columns - 0.35 * _rows(rows)
    groove, ridge = np.exp(-((off / 2.2) ** 2)), np.exp(-(((off - 4) / 1.8) ** 2))
    splice: Plane = 1 - 0.35 * groove + 0.25 * ridge
    return splice


def _rows(count: int) -> Plane:
    return np.arange(count, dtype=np.float32)[:, None]


def _columns(count: int) -> Plane:
    return np.arange(count, dtype=np.float32)[None, :]


def _rails(rng: np.random.Generator, width: int, height: int) -> Image:
    profile = np.array(_RAIL, np.float32)[:, None]
    upright = cv2.resize(profile, (1, height), interpolation=cv2.INTER_AREA)
    brushed = upright * rng.normal(1, 0.02, (height, 1)) * rng.normal(1, 0.012, (1, width))
    return _tinted(brushed.astype(np.float32), (0.94, 0.92, 0.9))


def _lens(rng: np.random.Generator, width: int, height: int) -> Image:
    down, across = _rows(_LENS_SIDE) / _LENS_SIDE - 0.5, _columns(_LENS_SIDE) / _LENS_SIDE - 0.5
    lamp_x, lamp_y = rng.uniform(-0.15, 0.15, 2)
    light = _LENS * (1 - 0.7 * ((across - lamp_x) ** 2 + (down - lamp_y) ** 2))
    warmth = rng.uniform(-0.06, 0.06)
    drawn = _tinted(light, (1 - warmth, 1, 1 + warmth))
    return cast("Image", cv2.resize(drawn, (width, height)))


def _noise(rng: np.random.Generator, width: int, height: int) -> Image:
    """From 0 up; two throws of the dice make its middle the likeliest."""
    dice = rng.integers(0, _NOISE, (2, _NOISE_SIDE, _NOISE_SIDE, 3), np.uint8, endpoint=True)
    tile = dice[0] + dice[1]
    times = (math.ceil(height / _NOISE_SIDE), math.ceil(width / _NOISE_SIDE), 1)
    return np.tile(tile, times)[:height, :width]


def _tinted(bright: Plane, color: Iterable[float]) -> Image:
    return np.stack([np.clip(bright * part, 0, 255).astype(np.uint8) for part in color], axis=2)
