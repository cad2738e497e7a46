"""Shapes of the parts on the conveyor, unrotated, of length 1 and centered at the origin."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Polygon = NDArray[np.float64]
"""Points as rows of x and y."""
Plane = NDArray[np.floating[Any]]


class PartKind(enum.StrEnum):
    GEAR = "gear"
    BOLT = "bolt"
    NUT = "nut"


@dataclass(frozen=True, slots=True)
class Gear:
    is_lathe_turned: ClassVar[bool] = True
    """Whether the face is finished on a lathe."""
    teeth: int
    bore: float
    hole_count: int
    """Number of holes around the bore."""

    @property
    def thickness(self) -> float:
        return 0.3 * self.bore + 0.1

    @property
    def root_radius(self) -> float:
        """Radius between the teeth."""
        return 0.5 - 1.7 / (self.teeth + 2)

    def outline(self) -> list[Polygon]:
        """Return polygons; points inside an odd number of them are metal."""
        middle = (self.root_radius + 0.5) / 2
        flank = [(self.root_radius, 0.34), (middle, 0.27), (0.5, 0.15)]
        tooth = [(r, -turn) for r, turn in flank] + [(r, turn) for r, turn in reversed(flank)]
        rim = [(r, number + turn) for number in range(self.teeth) for r, turn in tooth]
        radius, turn = np.array(rim).T
        return [_polar(radius, turn / self.teeth), _circle(self.bore), *self._holes()]

    def _holes(self) -> list[Polygon]:
        inner, outer = self._web_radii()
        holes = [_circle((outer - inner) * 0.36) for _ in range(self.hole_count)]
        around = _polar((inner + outer) / 2, np.arange(self.hole_count) / max(1, self.hole_count))
        return [hole + center for hole, center in zip(holes, around, strict=True)]

    def _web_radii(self) -> tuple[float, float]:
        """Return the radii between which the gear is thinner."""
        return 1.55 * self.bore, self.root_radius - 0.06

    def relief(self, x: Plane, y: Plane) -> Plane:
        """Return the height of the surface without the bevel of its edges."""
        radius = np.hypot(x, y)
        inner, outer = self._web_radii()
        return 0.03 * np.maximum(_ramp(radius, outer, 0.02), 1 - _ramp(radius, inner, 0.02))

    def brush_coordinate(self, x: Plane, y: Plane) -> Plane:
        """Return a coordinate that is constant along the tool marks of the surface."""
        return np.hypot(x, y)


@dataclass(frozen=True, slots=True)
class Nut:
    is_lathe_turned: ClassVar[bool] = True
    bore: float

    @property
    def thickness(self) -> float:
        return 0.4

    def outline(self) -> list[Polygon]:
        return [_polar(0.5, np.arange(6) / 6), _circle(self.bore)]

    def relief(self, x: Plane, y: Plane) -> Plane:
        radius = np.hypot(x, y)
        corners = 0.55 * np.maximum(radius - 0.405, 0)
        mouth = 0.9 * np.maximum(1.22 * self.bore - radius, 0)
        return -corners - mouth

    def brush_coordinate(self, x: Plane, y: Plane) -> Plane:
        return np.hypot(x, y)


@dataclass(frozen=True, slots=True)
class Bolt:
    is_lathe_turned: ClassVar[bool] = False
    shank: float
    """Radius of the shank."""
    unthreaded_share: float
    """Fraction of the shank without a thread, starting at the head."""
    is_domed: bool
    """Whether the head is domed rather than hexagonal."""

    @property
    def thickness(self) -> float:
        return 2 * self._head_size()[1]

    @property
    def pitch(self) -> float:
        return max(0.5 * self.shank, 0.04)

    def outline(self) -> list[Polygon]:
        long, wide = self._head_size()
        neck = long - 0.5
        crests = np.arange(self._thread_start(), 0.5 - self.shank / 2, self.pitch / 2)
        depth = np.where(np.arange(len(crests)) % 2, 0.86, 1.0) * self.shank
        tip = [(0.5 - self.shank / 2.5, 0.9 * self.shank), (0.5, 0.6 * self.shank)]
        side = [*self._head_side(), (neck, wide), (neck, self.shank)]
        side += [*zip(crests, depth, strict=True), *tip]
        return [np.array(side + [(x, -y) for x, y in reversed(side)])]

    def _head_size(self) -> tuple[float, float]:
        """Return the length and half the width of the head."""
        return (
            (1.15 * self.shank, 1.8 * self.shank)
            if self.is_domed
            else (1.35 * self.shank, 2 * self.shank)
        )

    def _head_side(self) -> list[tuple[float, float]]:
        long, wide = self._head_size()
        if not self.is_domed:
            return [(-0.5, 0.8 * wide), (0.2 * long - 0.5, wide)]
        turns = np.linspace(0.1, 1.0, 9) * math.pi / 2
        return [(long * (1 - math.cos(t)) - 0.5, wide * math.sin(t)) for t in turns]

    def _thread_start(self) -> float:
        neck = self._head_size()[0] - 0.5
        return neck + max(self.unthreaded_share * (0.5 - neck), 0.03)

    def relief(self, x: Plane, y: Plane) -> Plane:
        shank = np.sqrt(np.maximum(self.shank**2 - y**2, 0)) + self._thread(x, y)
        along = (x + 0.5) / self._head_size()[0]
        head = self._dome(along, y) if self.is_domed else self._flats(along, y)
        return np.where(along < 1, head, shank)

    def _dome(self, along: Plane, y: Plane) -> Plane:
        wide = self._head_size()[1]
        return wide * np.sqrt(np.maximum(1 - (y / wide) ** 2 - (1 - along) ** 2, 0))

    def _flats(self, along: Plane, y: Plane) -> Plane:
        wide = self._head_size()[1]
        flats: Plane = np.minimum(0.45 * wide, 0.9 * (wide - np.abs(y)))
        chamfer: Plane = 0.3 * wide * np.maximum(0.2 - along, 0)
        return flats - chamfer

    def _thread(self, x: Plane, y: Plane) -> Plane:
        start = self._thread_start()
        wave = np.cos((2 * math.pi / self.pitch) * (x - start + 0.25 * y))
        return 0.16 * self.pitch * wave * ((x > start) & (x < 0.5 - self.shank / 3))

    def brush_coordinate(self, x: Plane, y: Plane) -> Plane:
        return np.where(x + 0.5 < self._head_size()[0], x, y)


Body = Gear | Nut | Bolt


def random_body(kind: PartKind, rng: np.random.Generator) -> Body:
    match kind:
        case PartKind.GEAR:
            teeth = int(rng.integers(8, 15))
            windows = int(rng.choice((0, 0, 4, 5, 6))) if teeth > 10 else 0
            return Gear(teeth, rng.uniform(0.075, 0.125), windows)
        case PartKind.NUT:
            return Nut(rng.uniform(0.22, 0.28))
        case PartKind.BOLT:
            return Bolt(rng.uniform(0.075, 0.115), rng.uniform(0, 0.45), bool(rng.integers(2)))


def _polar(radius: float | Polygon, turns: Polygon) -> Polygon:
    around = 2 * math.pi * turns
    return np.stack([radius * np.cos(around), radius * np.sin(around)], axis=1)


def _circle(radius: float) -> Polygon:
    return _polar(radius, np.arange(48) / 48)


def _ramp(plane: Plane, start: float, width: float) -> Plane:
    """Map the values to a linear ramp from 0 to 1, which is `width` wide and centered at
    `start`."""
    ramp: Plane = np.clip((plane - start) / width + 0.5, 0, 1)
    return ramp
