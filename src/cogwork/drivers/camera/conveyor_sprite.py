"""A part of the conveyor as pixels: what it covers, and how its metal looks in the light."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.conveyor_body import Body, Kind, Plane, random_body

Image = NDArray[np.uint8]
_Pixels = TypeVar("_Pixels", Image, Plane)

_UP = np.array([0, 0, 1])
_LIGHT = np.array([0.42, -0.55, 0.72]) / math.hypot(0.42, -0.55, 0.72)
"""Where the light comes from: the right, the top, and the camera's side."""
_GLINT = (_LIGHT + _UP) / np.linalg.norm(_LIGHT + _UP)
"""Where a surface that mirrors the light into the camera faces."""
_SUBPIXEL_BITS = 4
_SHADOW_SIDE = 128


class Tint(enum.StrEnum):
    STEEL = "steel"
    BRASS = "brass"
    OXIDE = "oxide"


_METALS = {  # blue, green and red; and how much of a mirror it is
    Tint.STEEL: ((196, 192, 186), 1.0),
    Tint.BRASS: ((66, 156, 202), 0.9),
    Tint.OXIDE: ((104, 94, 88), 0.7),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """All that stays the same of a part while it moves; equal shapes have equal pixels."""

    kind: Kind
    body: Body
    size: float
    """Its largest extent in pixels: over a gear's tips, a nut's corners, a bolt's length."""
    angle: float
    height_mm: int
    tint: Tint
    shade: float
    """How bright its metal is; 1 is the tint itself."""
    wear: int
    """Which smudges it has."""

    @property
    def half(self) -> int:
        """Half the side of the patch that holds the part and its shadow, in pixels."""
        return math.ceil(0.68 * self.size) + 2

    @property
    def finer(self) -> int:
        """How many times finer than the picture it is drawn."""
        return 4 if self.size < 48 else 2 if self.size < 144 else 1


@dataclass(frozen=True, slots=True)
class Sprite:
    """A patch that is put on a picture by `picture * keep / 255 + metal`."""

    metal: Image
    keep: Image
    covers: NDArray[np.bool_]


def random_shape(rng: np.random.Generator, room: float, mm_per_pixel: float) -> Shape:
    """A part that fits, whichever way it is turned, in a circle `room` pixels wide."""
    kind = tuple(Kind)[rng.integers(len(Kind))]
    small, large = {Kind.GEAR: (0.7, 0.97), Kind.BOLT: (0.7, 0.91), Kind.NUT: (0.45, 0.7)}[kind]
    body = random_body(kind, rng)
    size = room * rng.uniform(small, large)
    return Shape(
        kind=kind,
        body=body,
        size=size,
        angle=rng.uniform(0, 2 * math.pi),
        height_mm=max(1, round(body.thickness * size * mm_per_pixel)),
        tint=tuple(Tint)[rng.choice(len(Tint), p=(0.5, 0.25, 0.25))],
        shade=rng.uniform(0.8, 1.15),
        wear=int(rng.integers(2**32)),
    )


def footprint(shape: Shape) -> NDArray[np.bool_]:
    """The pixels of its patch of which the part covers at least half."""
    return _shrunk(shape, _silhouette(shape)) >= 128


def draw(shape: Shape) -> Sprite:
    silhouette = _silhouette(shape)
    cover = _shrunk(shape, silhouette)
    share = cover / np.float32(255)
    keep = 255 * (1 - share) * (1 - _shadow(shape, cover))
    return Sprite(
        _whole(_metal(shape, silhouette) * share[..., None]),
        np.repeat(_whole(keep)[..., None], 3, axis=2),
        cover >= 128,
    )


def _whole(plane: Plane) -> Image:
    return np.clip(plane, 0, 255).round().astype(np.uint8)


def _silhouette(shape: Shape) -> Image:
    side = 2 * shape.half * shape.finer
    turned = [points @ _turn(shape.angle).T * shape.size for points in shape.body.outline()]
    # OpenCV counts from the middle of the first pixel, and we from its corner.
    placed = [(points + shape.half) * shape.finer - 0.5 for points in turned]
    corners = [np.round(points * 2**_SUBPIXEL_BITS).astype(np.int32) for points in placed]
    blank = np.zeros((side, side), np.uint8)
    return cast("Image", cv2.fillPoly(blank, corners, 255, cv2.LINE_AA, _SUBPIXEL_BITS))


def _turn(angle: float) -> NDArray[np.float64]:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _shrunk(shape: Shape, fine: _Pixels) -> _Pixels:
    side = 2 * shape.half
    return cast("_Pixels", cv2.resize(fine, (side, side), interpolation=cv2.INTER_AREA))


def _shadow(shape: Shape, cover: Image) -> Plane:
    """How much of the light it keeps from the belt around it; drawn small, as it is soft."""
    side = min(_SHADOW_SIDE, 2 * shape.half)
    size = side * shape.size / (2 * shape.half)
    small = cv2.resize(cover, (side, side), interpolation=cv2.INTER_AREA)
    away = np.array([[1, 0, -0.035 * size], [0, 1, 0.045 * size]])
    wide = cv2.GaussianBlur(cv2.warpAffine(small, away, small.shape), (0, 0), 0.045 * size)
    near = cv2.GaussianBlur(small, (0, 0), 0.015 * size + 0.3)
    dark = np.maximum(wide * np.float32(0.62 / 255), near * np.float32(0.5 / 255))
    return cast("Plane", cv2.resize(dark, cover.shape))


def _metal(shape: Shape, silhouette: Image) -> Plane:
    x, y = _across(shape)
    normal = _normals(shape, silhouette, shape.body.relief(x, y))
    glint = cast("Plane", cv2.pow(_toward(_GLINT, normal), 24))
    lit = (0.26 + 0.9 * _toward(_LIGHT, normal)) * _finish(shape, x, y)
    color, mirror = _METALS[shape.tint]
    base: Plane = shape.shade * _shrunk(shape, lit)[..., None] * np.array(color, np.float32)
    shine: Plane = 140 * mirror * _shrunk(shape, glint)[..., None]
    return np.add(base, shine)


def _toward(direction: NDArray[np.float64], normal: tuple[Plane, Plane, Plane]) -> Plane:
    """How much a surface faces that direction: 1 fully, 0 not at all."""
    x, y, z = (np.float32(axis) for axis in direction)
    facing: Plane = np.maximum(x * normal[0] + y * normal[1] + z * normal[2], 0)
    return facing


def _across(shape: Shape) -> tuple[Plane, Plane]:
    """Where each fine pixel of the patch is on the body."""
    side = 2 * shape.half * shape.finer
    line = ((np.arange(side, dtype=np.float32) + 0.5) / shape.finer - shape.half) / shape.size
    cos, sin = np.float32(math.cos(shape.angle)), np.float32(math.sin(shape.angle))
    right, down = line[None, :], line[:, None]
    return cos * right + sin * down, cos * down - sin * right


def _normals(shape: Shape, silhouette: Image, relief: Plane) -> tuple[Plane, Plane, Plane]:
    fine_size = shape.size * shape.finer
    inward = cv2.distanceTransform(silhouette, cv2.DIST_L2, 3)
    bevel = 0.9 * np.minimum(inward, 0.022 * fine_size)
    surface = cv2.GaussianBlur(relief * fine_size + bevel, (0, 0), 0.5 * shape.finer)
    slope_x = cv2.Sobel(surface, cv2.CV_32F, 1, 0, scale=1 / 8)
    slope_y = cv2.Sobel(surface, cv2.CV_32F, 0, 1, scale=1 / 8)
    upright = 1 / np.sqrt(1 + slope_x**2 + slope_y**2)
    return -slope_x * upright, -slope_y * upright, upright


def _finish(shape: Shape, x: Plane, y: Plane) -> Plane:
    """The marks of the tool, the fan of light they make on a turned face, and smudges."""
    rng = np.random.default_rng(shape.wear)
    strokes = rng.normal(1, 0.035, 256).astype(np.float32)
    tooled = strokes[((shape.body.brushing(x, y) + 1) * 160).astype(np.int32) % 256]
    smudges = rng.normal(1, 0.06, (7, 7)).astype(np.float32)
    clouded = cv2.resize(smudges, x.shape, interpolation=cv2.INTER_CUBIC)
    return tooled * clouded * (_fan(shape, x, y) if shape.body.turned else 1)


def _fan(shape: Shape, x: Plane, y: Plane) -> Plane:
    toward = 2 * (math.atan2(_LIGHT[1], _LIGHT[0]) - shape.angle)
    cos, sin = np.float32(math.cos(toward)), np.float32(math.sin(toward))
    x2, y2 = x * x, y * y
    return 1 + np.float32(0.2) * (cos * (x2 - y2) + 2 * sin * x * y) / (x2 + y2)
