"""Sprites of the conveyor's parts: their masks and their shaded metal."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.conveyor_body import Body, PartKind, Plane, random_body

Uint8Image = NDArray[np.uint8]
_Pixels = TypeVar("_Pixels", Uint8Image, Plane)

_UP = np.array([0, 0, 1])
_LIGHT_DIRECTION = np.array([0.42, -0.55, 0.72]) / math.hypot(0.42, -0.55, 0.72)
"""Direction of the light: from the right, the top and the camera's side."""
_HALF_VECTOR = (_LIGHT_DIRECTION + _UP) / np.linalg.norm(_LIGHT_DIRECTION + _UP)
"""Normal of a surface that reflects the light into the camera."""
_SUBPIXEL_BITS = 4
_SHADOW_SIDE = 128


class Tint(enum.StrEnum):
    STEEL = "steel"
    BRASS = "brass"
    OXIDE = "oxide"


_METALS = {  # BGR color and reflectivity
    Tint.STEEL: ((196, 192, 186), 1.0),
    Tint.BRASS: ((66, 156, 202), 0.9),
    Tint.OXIDE: ((104, 94, 88), 0.7),
}


@dataclass(frozen=True, slots=True)
class PartAppearance:
    """The appearance of a part, which does not change while the part moves.

    Parts with equal values have equal pixels.
    """

    kind: PartKind
    body: Body
    size: float
    """Largest extent in pixels: tip diameter of a gear, corners of a nut, length of a bolt."""
    angle: float
    height_mm: int
    tint: Tint
    shade: float
    """Brightness of the metal relative to the tint."""
    wear_seed: int
    """Seed of the smudges."""

    @property
    def half_side(self) -> int:
        """Half the side of the sprite, which holds the part and its shadow, in pixels."""
        return math.ceil(0.68 * self.size) + 2

    @property
    def supersampling(self) -> int:
        """Supersampling factor along each axis of the image."""
        return 4 if self.size < 48 else 2 if self.size < 144 else 1


@dataclass(frozen=True, slots=True)
class Sprite:
    """A sprite to blend into an image: `image * background_alpha / 255 + metal`."""

    metal: Uint8Image
    background_alpha: Uint8Image
    mask: NDArray[np.bool_]


def random_appearance(rng: np.random.Generator, room: float, mm_per_pixel: float) -> PartAppearance:
    """Return a random part that fits, in any rotation, into a circle of diameter `room` pixels."""
    kind = tuple(PartKind)[rng.integers(len(PartKind))]
    small, large = {
        PartKind.GEAR: (0.7, 0.97),
        PartKind.BOLT: (0.7, 0.91),
        PartKind.NUT: (0.45, 0.7),
    }[kind]
    body = random_body(kind, rng)
    size = room * rng.uniform(small, large)
    return PartAppearance(
        kind=kind,
        body=body,
        size=size,
        angle=rng.uniform(0, 2 * math.pi),
        height_mm=max(1, round(body.thickness * size * mm_per_pixel)),
        tint=tuple(Tint)[rng.choice(len(Tint), p=(0.5, 0.25, 0.25))],
        shade=rng.uniform(0.8, 1.15),
        wear_seed=int(rng.integers(2**32)),
    )


def compute_footprint(shape: PartAppearance) -> NDArray[np.bool_]:
    """Return the pixels of the sprite that the part covers by at least half."""
    return _downsample(shape, _draw_silhouette(shape)) >= 128


def draw_sprite(shape: PartAppearance) -> Sprite:
    silhouette = _draw_silhouette(shape)
    cover = _downsample(shape, silhouette)
    share = cover / np.float32(255)
    keep = 255 * (1 - share) * (1 - _draw_shadow(shape, cover))
    return Sprite(
        _to_uint8(_shade_metal(shape, silhouette) * share[..., None]),
        np.repeat(_to_uint8(keep)[..., None], 3, axis=2),
        cover >= 128,
    )


def _to_uint8(plane: Plane) -> Uint8Image:
    return np.clip(plane, 0, 255).round().astype(np.uint8)


def _draw_silhouette(shape: PartAppearance) -> Uint8Image:
    side = 2 * shape.half_side * shape.supersampling
    rotated = [
        points @ _rotation_matrix(shape.angle).T * shape.size for points in shape.body.outline()
    ]
    # These coordinates have their origin at the corner of the first pixel, and OpenCV at its
    # center.
    placed = [(points + shape.half_side) * shape.supersampling - 0.5 for points in rotated]
    corners = [np.round(points * 2**_SUBPIXEL_BITS).astype(np.int32) for points in placed]
    blank = np.zeros((side, side), np.uint8)
    return cast("Uint8Image", cv2.fillPoly(blank, corners, 255, cv2.LINE_AA, _SUBPIXEL_BITS))


def _rotation_matrix(angle: float) -> NDArray[np.float64]:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _downsample(shape: PartAppearance, fine: _Pixels) -> _Pixels:
    side = 2 * shape.half_side
    return cast("_Pixels", cv2.resize(fine, (side, side), interpolation=cv2.INTER_AREA))


def _draw_shadow(shape: PartAppearance, cover: Uint8Image) -> Plane:
    """Return the fraction of light that the shadow blocks.

    The shadow is soft, so it is drawn small and enlarged.
    """
    side = min(_SHADOW_SIDE, 2 * shape.half_side)
    size = side * shape.size / (2 * shape.half_side)
    small = cv2.resize(cover, (side, side), interpolation=cv2.INTER_AREA)
    shift = np.array([[1, 0, -0.035 * size], [0, 1, 0.045 * size]])
    wide = cv2.GaussianBlur(cv2.warpAffine(small, shift, small.shape), (0, 0), 0.045 * size)
    near = cv2.GaussianBlur(small, (0, 0), 0.015 * size + 0.3)
    dark = np.maximum(wide * np.float32(0.62 / 255), near * np.float32(0.5 / 255))
    return cast("Plane", cv2.resize(dark, cover.shape))


def _shade_metal(shape: PartAppearance, silhouette: Uint8Image) -> Plane:
    x, y = _body_coordinates(shape)
    normal = _surface_normals(shape, silhouette, shape.body.relief(x, y))
    glint = cast("Plane", cv2.pow(_facing_ratio(_HALF_VECTOR, normal), 24))
    lit = (0.26 + 0.9 * _facing_ratio(_LIGHT_DIRECTION, normal)) * _surface_finish(shape, x, y)
    color, mirror = _METALS[shape.tint]
    base: Plane = shape.shade * _downsample(shape, lit)[..., None] * np.array(color, np.float32)
    shine: Plane = 140 * mirror * _downsample(shape, glint)[..., None]
    return np.add(base, shine)


def _facing_ratio(direction: NDArray[np.float64], normal: tuple[Plane, Plane, Plane]) -> Plane:
    """Return how much a surface faces the direction: 1 fully, 0 not at all."""
    x, y, z = (np.float32(axis) for axis in direction)
    facing: Plane = np.maximum(x * normal[0] + y * normal[1] + z * normal[2], 0)
    return facing


def _body_coordinates(shape: PartAppearance) -> tuple[Plane, Plane]:
    """Return the body coordinates x and y of each supersampled pixel of the sprite."""
    side = 2 * shape.half_side * shape.supersampling
    line = (
        (np.arange(side, dtype=np.float32) + 0.5) / shape.supersampling - shape.half_side
    ) / shape.size
    cos, sin = np.float32(math.cos(shape.angle)), np.float32(math.sin(shape.angle))
    right, down = line[None, :], line[:, None]
    return cos * right + sin * down, cos * down - sin * right


def _surface_normals(
    shape: PartAppearance, silhouette: Uint8Image, relief: Plane
) -> tuple[Plane, Plane, Plane]:
    fine_size = shape.size * shape.supersampling
    inward = cv2.distanceTransform(silhouette, cv2.DIST_L2, 3)
    bevel = 0.9 * np.minimum(inward, 0.022 * fine_size)
    surface = cv2.GaussianBlur(relief * fine_size + bevel, (0, 0), 0.5 * shape.supersampling)
    slope_x = cv2.Sobel(surface, cv2.CV_32F, 1, 0, scale=1 / 8)
    slope_y = cv2.Sobel(surface, cv2.CV_32F, 0, 1, scale=1 / 8)
    upright = 1 / np.sqrt(1 + slope_x**2 + slope_y**2)
    return -slope_x * upright, -slope_y * upright, upright


def _surface_finish(shape: PartAppearance, x: Plane, y: Plane) -> Plane:
    """Return tool marks, the anisotropic highlight of a turned face, and smudges."""
    rng = np.random.default_rng(shape.wear_seed)
    strokes = rng.normal(1, 0.035, 256).astype(np.float32)
    tooled = strokes[((shape.body.brush_coordinate(x, y) + 1) * 160).astype(np.int32) % 256]
    smudges = rng.normal(1, 0.06, (7, 7)).astype(np.float32)
    clouded = cv2.resize(smudges, x.shape, interpolation=cv2.INTER_CUBIC)
    return tooled * clouded * (_anisotropic_light(shape, x, y) if shape.body.is_lathe_turned else 1)


def _anisotropic_light(shape: PartAppearance, x: Plane, y: Plane) -> Plane:
    toward = 2 * (math.atan2(_LIGHT_DIRECTION[1], _LIGHT_DIRECTION[0]) - shape.angle)
    cos, sin = np.float32(math.cos(toward)), np.float32(math.sin(toward))
    x2, y2 = x * x, y * y
    return 1 + np.float32(0.2) * (cos * (x2 - y2) + 2 * sin * x * y) / (x2 + y2)
