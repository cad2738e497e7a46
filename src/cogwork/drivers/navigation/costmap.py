"""A costmap of the zones: the cost of each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.navigation.coordinates import MapPoint
from cogwork.drivers.navigation.polygon import Polygon

MIN_CELL_SIZE = 0.05
"""Minimum size of a cell in meters."""
MAX_CELLS = 200
"""Maximum cells along each side."""
KEEPOUT_COST = 100
SLOW_COST = 50


@dataclass(frozen=True, slots=True)
class Costmap:
    origin: MapPoint
    """The lower left corner."""
    resolution: float
    width: int
    height: int
    data: bytes
    """The costs row by row, from the bottom."""


@dataclass(frozen=True, slots=True)
class CostmapArea:
    low: MapPoint
    high: MapPoint

    @classmethod
    def around(cls, points: Sequence[MapPoint], margin: float) -> CostmapArea:
        xs, ys = zip(*points, strict=True)
        return cls((min(xs) - margin, min(ys) - margin), (max(xs) + margin, max(ys) + margin))


def build_costmap(
    area: CostmapArea, stride: int, slow: Sequence[Polygon], keepouts: Sequence[Polygon]
) -> Costmap:
    """Build the costmap; keepout zones override speed limits."""
    width, height = area.high[0] - area.low[0], area.high[1] - area.low[1]
    resolution = max(MIN_CELL_SIZE * stride, width / MAX_CELLS, height / MAX_CELLS)
    columns, rows = (max(math.ceil(side / resolution - 1e-9), 1) for side in (width, height))
    cells = [bytearray(columns) for _ in range(rows)]
    for cost, polygons in ((SLOW_COST, slow), (KEEPOUT_COST, keepouts)):
        for polygon in polygons:
            _fill(cells, polygon, cost, area.low, resolution)
    return Costmap(area.low, resolution, columns, rows, b"".join(cells))


def _fill(
    cells: list[bytearray], polygon: Polygon, cost: int, origin: MapPoint, resolution: float
) -> None:
    """Set the cost of the cells whose centers are inside the polygon."""
    columns = len(cells[0])
    first = max(math.floor((polygon.low[1] - origin[1]) / resolution), 0)
    last = min(math.ceil((polygon.high[1] - origin[1]) / resolution), len(cells))
    for row in range(first, last):
        crossings = polygon.scanline_crossings(origin[1] + (row + 0.5) * resolution)
        for start, end in zip(crossings[::2], crossings[1::2], strict=True):
            left = max(math.ceil((start - origin[0]) / resolution - 0.5), 0)
            right = min(math.ceil((end - origin[0]) / resolution - 0.5), columns)
            if left < right:
                cells[row][left:right] = bytes((cost,)) * (right - left)
