"""The conveyor scene of the fake camera: gears, bolts and nuts on a moving belt."""

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
from cogwork.drivers.camera.conveyor_body import PartKind
from cogwork.drivers.camera.conveyor_sprite import (
    PartAppearance,
    compute_footprint,
    draw_sprite,
    random_appearance,
)
from cogwork.resource.point_cloud import Intrinsics

__all__ = ["Box", "Conveyor", "ConveyorPart", "Intrinsics", "PartKind", "Scene"]

_PARTS_CACHED = 64
_SPRITES_CACHED = 32
_RAIL_HEIGHT_MM = 150
_PARTS_IN_SIGHT = 5
_MIN_VISIBLE_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Box:
    """A box in pixels; the maxima are exclusive."""

    x_min: int
    y_min: int
    x_max: int
    y_max: int


@dataclass(frozen=True, slots=True)
class ConveyorPart:
    number: int
    """Identifier of the part while the part is on the belt."""
    appearance: PartAppearance
    x: float
    """Center in pixels, like `y`; drawn at the nearest integer."""
    y: float
    box: Box
    """Bounding box of the visible pixels of the part."""
    visible_share: float
    """Visible fraction of the part, from 0 to 1."""

    @property
    def kind(self) -> PartKind:
        return self.appearance.kind

    @property
    def size(self) -> float:
        return self.appearance.size

    @property
    def angle(self) -> float:
        return self.appearance.angle

    @property
    def height_mm(self) -> int:
        return self.appearance.height_mm


@dataclass(frozen=True, slots=True)
class Scene:
    parts: tuple[ConveyorPart, ...]
    """Parts with at least one visible pixel."""
    scroll: float
    """Distance in pixels that the belt has moved."""
    light: float
    """Brightness of the lamp, which drifts around 1."""
    noise_seed: int
    """Seed of the sensor noise."""

    @property
    def ground_truth(self) -> tuple[ConveyorPart, ...]:
        """Parts that are at least one third visible, which is enough to recognize their kind."""
        return tuple(part for part in self.parts if part.visible_share >= _MIN_VISIBLE_SHARE)


@dataclass(frozen=True, slots=True)
class _PlacedPart:
    """A part and its position before the belt moves."""

    appearance: PartAppearance
    start_x: int
    y: int
    footprint: NDArray[np.bool_]


class Conveyor:
    """A conveyor whose images depend only on the seed (0 or more), the size and the time.

    Every lane is divided into slots of equal length with one part each. So parts do not overlap,
    and the visible ones are found without checking the others.
    """

    belt_distance_mm = 1000

    def __init__(self, seed: int, width: int = 640, height: int = 480) -> None:
        self._seed = seed
        self._image_shape = (height, width)
        focal = 0.9 * width
        self.intrinsics = Intrinsics(width, height, focal, focal, width / 2, height / 2)
        self.speed = width / 5
        """Pixels per second."""
        rng = self._rng(0)
        unit = min(height, 0.75 * width)
        self._rail_height = max(1, round(0.05 * unit))
        lanes = int(rng.integers(2, 5))
        self._lane_height = (height - 2 * self._rail_height) / lanes
        self._max_part_size = min(self._lane_height, 0.36 * unit) - 2
        self._slot_length = width * lanes / _PARTS_IN_SIGHT
        self._lane_phases = (np.arange(lanes) / lanes + rng.uniform()) % 1
        self._light_phases = rng.uniform(0, 2 * math.pi, 2)
        self._placed_part = functools.lru_cache(_PARTS_CACHED)(self._place_part)
        self._sprite = functools.lru_cache(_SPRITES_CACHED)(draw_sprite)

    def scene_at(self, seconds: float) -> Scene:
        """Return the scene at a time in seconds since the start."""
        scroll = self.speed * seconds
        parts = [
            self._visible_part(slot * len(self._lane_phases) + lane, scroll)
            for lane in range(len(self._lane_phases))
            for slot in self._visible_slots(lane, scroll)
        ]
        return Scene(
            tuple(part for part in parts if part is not None),
            scroll,
            self._light(seconds),
            zlib.crc32(struct.pack("<d", seconds)),
        )

    def render(self, scene: Scene) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """Return the color image (BGR), and the depth image in millimeters from the camera."""
        color = self._backdrop.render(_round_half_up(scene.scroll))
        depth = np.full(color.shape[:2], self.belt_distance_mm - _RAIL_HEIGHT_MM, np.uint16)
        belt = slice(self._rail_height, -self._rail_height)
        depth[belt] = self.belt_distance_mm
        for part in scene.parts:
            self._draw_part(part, color[belt], depth[belt])
        self._exposure.apply(color, scene.light, scene.noise_seed)
        return color, depth

    @functools.cached_property
    def _backdrop(self) -> Backdrop:
        view = self.intrinsics
        return Backdrop(self._rng(1), view.width, view.height, self._rail_height)

    @functools.cached_property
    def _exposure(self) -> Exposure:
        return Exposure(self._rng(2), self.intrinsics.width, self.intrinsics.height)

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=purpose))

    def _visible_slots(self, lane: int, scroll: float) -> range:
        """Return the numbers of the visible slots.

        Slot 0 is the first on the belt. It starts at the right edge of the image, or beyond that
        edge.
        """
        passed = scroll / self._slot_length - self._lane_phases[lane]
        in_width = self.intrinsics.width / self._slot_length
        return range(math.ceil(passed + 0.5), math.floor(passed + in_width + 1.5) + 1)

    def _place_part(self, number: int) -> _PlacedPart:
        slot, lane = divmod(number, len(self._lane_phases))
        rng = self._rng(3, number)
        shape = random_appearance(
            rng, self._max_part_size, self.belt_distance_mm / self.intrinsics.focal_x
        )
        center = self.intrinsics.width + (1 - slot - self._lane_phases[lane]) * self._slot_length
        play_x, play_y = (
            (self._slot_length - self._max_part_size - 2) / 2,
            (self._lane_height - self._max_part_size - 2) / 2,
        )
        return _PlacedPart(
            shape,
            round(center + rng.uniform(-play_x, play_x)),
            round(
                self._rail_height + (lane + 0.5) * self._lane_height + rng.uniform(-play_y, play_y)
            ),
            compute_footprint(shape),
        )

    def _visible_part(self, number: int, scroll: float) -> ConveyorPart | None:
        """Return the part, or None if it is not visible."""
        placed = self._placed_part(number)
        x, y = placed.start_x + scroll, float(placed.y)
        in_image, in_sprite = _overlap(placed.appearance, x, y, self._image_shape)
        visible = placed.footprint[in_sprite]
        if not visible.any():
            return None
        return ConveyorPart(
            number,
            placed.appearance,
            x,
            y,
            _bounding_box(visible, in_image),
            np.count_nonzero(visible) / np.count_nonzero(placed.footprint),
        )

    def _light(self, seconds: float) -> float:
        slow, quick = self._light_phases
        return 1 + 0.1 * math.sin(seconds / 11 + slow) + 0.03 * math.sin(seconds / 2.3 + quick)

    def _draw_part(
        self, part: ConveyorPart, color: NDArray[np.uint8], depth: NDArray[np.uint16]
    ) -> None:
        on_belt, in_sprite = _overlap(
            part.appearance, part.x, part.y - self._rail_height, depth.shape
        )
        sprite = self._sprite(part.appearance)
        dimmed = cv2.multiply(color[on_belt], sprite.background_alpha[in_sprite], scale=1 / 255)
        color[on_belt] = cv2.add(dimmed, sprite.metal[in_sprite])
        depth[on_belt][sprite.mask[in_sprite]] = self.belt_distance_mm - part.height_mm


_Window = tuple[slice, slice]


def _overlap(
    shape: PartAppearance, x: float, y: float, image_shape: tuple[int, ...]
) -> tuple[_Window, _Window]:
    """Return the rows and columns of the visible area of a sprite, in the image and in the
    sprite."""
    top, left = _round_half_up(y) - shape.half_side, _round_half_up(x) - shape.half_side
    rows = _clip_span(top, 2 * shape.half_side, image_shape[0])
    columns = _clip_span(left, 2 * shape.half_side, image_shape[1])
    return (rows, columns), (_shift_span(rows, -top), _shift_span(columns, -left))


def _clip_span(start: int, length: int, end: int) -> slice:
    return slice(min(max(start, 0), end), max(min(start + length, end), 0))


def _shift_span(span: slice, by: int) -> slice:
    return slice(span.start + by, span.stop + by)


def _round_half_up(position: float) -> int:
    # Do not use `round`: rounding half to even would make parts slip on the belt.
    return math.floor(position + 0.5)


def _bounding_box(visible: NDArray[np.bool_], window: _Window) -> Box:
    rows, columns = np.flatnonzero(visible.any(axis=1)), np.flatnonzero(visible.any(axis=0))
    top, left = window[0].start, window[1].start
    return Box(
        int(left + columns[0]),
        int(top + rows[0]),
        int(left + columns[-1] + 1),
        int(top + rows[-1] + 1),
    )
