"""A picture of the zones, cell by cell: what it costs to be there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.navigation.chart import Spot
from cogwork.drivers.navigation.outline import Outline

FINEST = 0.05
"""Metres that a cell measures, before it is made coarser."""
MOST_CELLS = 200
"""Along each side."""
KEEP_OUT = 100
SLOW = 50


@dataclass(frozen=True, slots=True)
class Costmap:
    origin: Spot
    """Of its lower left corner."""
    resolution: float
    width: int
    height: int
    data: bytes
    """Row by row, from the lowest on."""


@dataclass(frozen=True, slots=True)
class Area:
    low: Spot
    high: Spot

    @classmethod
    def around(cls, spots: Sequence[Spot], margin: float) -> Area:
        xs, ys = zip(*spots, strict=True)
        return cls((min(xs) - margin, min(ys) - margin), (max(xs) + margin, max(ys) + margin))


def drawn(area: Area, stride: int, slow: Sequence[Outline], keepouts: Sequence[Outline]) -> Costmap:
    """What is to be kept out of covers what is slow."""
    width, height = area.high[0] - area.low[0], area.high[1] - area.low[1]
    resolution = max(FINEST * stride, width / MOST_CELLS, height / MOST_CELLS)
    columns, rows = (max(math.ceil(side / resolution - 1e-9), 1) for side in (width, height))
    cells = [bytearray(columns) for _ in range(rows)]
    for cost, outlines in ((SLOW, slow), (KEEP_OUT, keepouts)):
        for outline in outlines:
            _fill(cells, outline, cost, area.low, resolution)
    return Costmap(area.low, resolution, columns, rows, b"".join(cells))


def _fill(
    cells: list[bytearray], outline: Outline, cost: int, origin: Spot, resolution: float
) -> None:
    """The cells whose middles are inside."""
    columns = len(cells[0])
    first = max(math.floor((outline.low[1] - origin[1]) / resolution), 0)
    last = min(math.ceil((outline.high[1] - origin[1]) / resolution), len(cells))
    for row in range(first, last):
        crossed = outline.crossed_at(origin[1] + (row + 0.5) * resolution)
        for start, end in zip(crossed[::2], crossed[1::2], strict=True):
            left = max(math.ceil((start - origin[0]) / resolution - 0.5), 0)
            right = min(math.ceil((end - origin[0]) / resolution - 0.5), columns)
            if left < right:
                cells[row][left:right] = bytes((cost,)) * (right - left)
