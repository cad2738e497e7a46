"""Gears, bolts and nuts that pass on a conveyor belt: the scene that the fake camera sees."""

from __future__ import annotations

import functools
import math
import struct
import zlib
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.conveyor_backdrop import Backdrop, Exposure
from cogwork.drivers.camera.conveyor_body import Kind
from cogwork.drivers.camera.conveyor_sprite import Shape, draw, footprint, random_shape
from cogwork.resource.point_cloud import Intrinsics

__all__ = ["Box", "Conveyor", "Intrinsics", "Kind", "Part", "Scene"]

_PIECES_KEPT = 64
_SPRITES_KEPT = 32
_RAIL_MM = 150
_PARTS_IN_SIGHT = 5
_TRUE_FROM = 1 / 3


@dataclass(frozen=True, slots=True)
class Box:
    """In pixels; the maxima are the first that are outside."""

    x_min: int
    y_min: int
    x_max: int
    y_max: int


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    """Says which part it is, from when it comes in sight until it leaves."""
    shape: Shape
    x: float
    """Of its centre, in pixels, as is y; it is drawn at the nearest whole one."""
    y: float
    box: Box
    """Around the pixels of it that are in the picture."""
    visible: float
    """Which share of it is in the picture, from 0 to 1."""

    @property
    def kind(self) -> Kind:
        return self.shape.kind

    @property
    def size(self) -> float:
        return self.shape.size

    @property
    def angle(self) -> float:
        return self.shape.angle

    @property
    def height_mm(self) -> int:
        return self.shape.height_mm


@dataclass(frozen=True, slots=True)
class Scene:
    parts: tuple[Part, ...]
    """Each of which at least a pixel is in the picture."""
    scroll: float
    """How many pixels the belt has run."""
    light: float
    """How bright the lamp is; it drifts around 1."""
    grain: int
    """Which noise the sensor has."""

    @property
    def truth(self) -> tuple[Part, ...]:
        """The parts of which at least a third is in the picture: enough to tell their kind."""
        return tuple(part for part in self.parts if part.visible >= _TRUE_FROM)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part and where it is while the belt has not run."""

    shape: Shape
    home_x: int
    y: int
    footprint: NDArray[np.bool_]


class Conveyor:
    """Everything follows from the seed (0 or more), the size and the time.

    Every lane is divided into slots of the same length, each with one part somewhere in it: so
    no part overlaps another, and those in sight at a time are found without looking at others.
    """

    belt_mm = 1000

    def __init__(self, seed: int, width: int = 640, height: int = 480) -> None:
        self._seed = seed
        self._size = (height, width)
        focal = 0.9 * width
        self.intrinsics = Intrinsics(width, height, focal, focal, width / 2, height / 2)
        self.speed = width / 5
        """In pixels a second."""
        rng = self._rng(0)
        unit = min(height, 0.75 * width)
        self._rail = max(1, round(0.05 * unit))
        lanes = int(rng.integers(2, 5))
        self._lane = (height - 2 * self._rail) / lanes
        self._room = min(self._lane, 0.36 * unit) - 2
        self._slot = width * lanes / _PARTS_IN_SIGHT
        self._phases = (np.arange(lanes) / lanes + rng.uniform()) % 1
        self._drift = rng.uniform(0, 2 * math.pi, 2)
        self._piece = functools.lru_cache(_PIECES_KEPT)(self._make)
        self._sprite = functools.lru_cache(_SPRITES_KEPT)(draw)

    def scene(self, seconds: float) -> Scene:
        """What is in sight that long after the start, which is 0."""
        scroll = self.speed * seconds
        parts = [
            self._part(slot * len(self._phases) + lane, scroll)
            for lane in range(len(self._phases))
            for slot in self._slots_in_sight(lane, scroll)
        ]
        return Scene(
            tuple(part for part in parts if part is not None),
            scroll,
            self._light(seconds),
            zlib.crc32(struct.pack("<d", seconds)),
        )

    def render(self, scene: Scene) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """In colour (blue, green, red), and in depth (millimetres from the camera)."""
        color = self._backdrop.picture(_nearest(scene.scroll))
        depth = np.full(color.shape[:2], self.belt_mm - _RAIL_MM, np.uint16)
        belt = slice(self._rail, -self._rail)
        depth[belt] = self.belt_mm
        for part in scene.parts:
            self._put(part, color[belt], depth[belt])
        self._exposure.develop(color, scene.light, scene.grain)
        return color, depth

    @functools.cached_property
    def _backdrop(self) -> Backdrop:
        view = self.intrinsics
        return Backdrop(self._rng(1), view.width, view.height, self._rail)

    @functools.cached_property
    def _exposure(self) -> Exposure:
        return Exposure(self._rng(2), self.intrinsics.width, self.intrinsics.height)

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=purpose))

    def _slots_in_sight(self, lane: int, scroll: float) -> range:
        """Slot 0 leads; at the start it is to the right of the picture, or at its edge."""
        passed = scroll / self._slot - self._phases[lane]
        in_width = self.intrinsics.width / self._slot
        return range(math.ceil(passed + 0.5), math.floor(passed + in_width + 1.5) + 1)

    def _make(self, number: int) -> _Piece:
        slot, lane = divmod(number, len(self._phases))
        rng = self._rng(3, number)
        shape = random_shape(rng, self._room, self.belt_mm / self.intrinsics.focal_x)
        middle = self.intrinsics.width + (1 - slot - self._phases[lane]) * self._slot
        play_x, play_y = (self._slot - self._room - 2) / 2, (self._lane - self._room - 2) / 2
        return _Piece(
            shape,
            round(middle + rng.uniform(-play_x, play_x)),
            round(self._rail + (lane + 0.5) * self._lane + rng.uniform(-play_y, play_y)),
            footprint(shape),
        )

    def _part(self, number: int, scroll: float) -> Part | None:
        """None: nothing of it is in the picture."""
        piece = self._piece(number)
        x, y = piece.home_x + scroll, float(piece.y)
        on_picture, on_patch = _overlap(piece.shape, x, y, self._size)
        inside = piece.footprint[on_patch]
        if not inside.any():
            return None
        return Part(
            number,
            piece.shape,
            x,
            y,
            _box(inside, on_picture),
            np.count_nonzero(inside) / np.count_nonzero(piece.footprint),
        )

    def _light(self, seconds: float) -> float:
        slow, quick = self._drift
        return 1 + 0.1 * math.sin(seconds / 11 + slow) + 0.03 * math.sin(seconds / 2.3 + quick)

    def _put(self, part: Part, color: NDArray[np.uint8], depth: NDArray[np.uint16]) -> None:
        on_belt, on_patch = _overlap(part.shape, part.x, part.y - self._rail, depth.shape)
        sprite = self._sprite(part.shape)
        dimmed = cv2.multiply(color[on_belt], sprite.keep[on_patch], scale=1 / 255)
        color[on_belt] = cv2.add(dimmed, sprite.metal[on_patch])
        depth[on_belt][sprite.covers[on_patch]] = self.belt_mm - part.height_mm


_Window = tuple[slice, slice]


def _overlap(shape: Shape, x: float, y: float, picture: tuple[int, ...]) -> tuple[_Window, _Window]:
    """Where the patch of a part is on the picture (rows, columns), and that on the patch."""
    top, left = _nearest(y) - shape.half, _nearest(x) - shape.half
    rows = _common(top, 2 * shape.half, picture[0])
    columns = _common(left, 2 * shape.half, picture[1])
    return (rows, columns), (_moved(rows, -top), _moved(columns, -left))


def _common(start: int, length: int, end: int) -> slice:
    return slice(min(max(start, 0), end), max(min(start + length, end), 0))


def _moved(span: slice, by: int) -> slice:
    return slice(span.start + by, span.stop + by)


def _nearest(position: float) -> int:
    # Rounding halves to even would let the parts slip on the belt.
    return math.floor(position + 0.5)


def _box(inside: NDArray[np.bool_], at: _Window) -> Box:
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    top, left = at[0].start, at[1].start
    return Box(
        int(left + columns[0]),
        int(top + rows[0]),
        int(left + columns[-1] + 1),
        int(top + rows[-1] + 1),
    )
