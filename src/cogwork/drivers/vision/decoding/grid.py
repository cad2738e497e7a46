"""The grid of cells in which a YOLO model predicts boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.vision.candidates import Floats

_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
_ANCHORS = (1, 3)


@dataclass(frozen=True, slots=True)
class Grid:
    """A YOLO grid. Cells are in row-major order, the finest stride first."""

    strides: tuple[int, ...]
    anchors_per_cell: int
    """Boxes per cell."""

    def cells(self, width: int, height: int) -> Floats:
        """Return [3, cells]: column, row and stride of each cell."""
        return _compute_cells(self.strides, width, height)


@lru_cache(maxsize=8)
def _compute_cells(strides: tuple[int, ...], width: int, height: int) -> Floats:
    levels = [_compute_level(stride, width, height) for stride in strides]
    cells: Floats = np.concatenate(levels, axis=1, dtype=np.float32)
    cells.flags.writeable = False
    return cells


def _compute_level(stride: int, width: int, height: int) -> NDArray[Any]:
    wide, high = _grid_size(stride, width, height)
    down, across = np.indices((high, wide)).reshape(2, -1)
    return np.stack((across, down, np.full_like(across, stride)))


def find_grid(rows: int, width: int, height: int) -> Grid | None:
    """Return the grid with this many boxes."""
    for strides in _STRIDES:
        cells = sum(math.prod(_grid_size(stride, width, height)) for stride in strides)
        for anchors in _ANCHORS:
            if rows == cells * anchors:
                return Grid(strides, anchors)
    return None


def _grid_size(stride: int, width: int, height: int) -> tuple[int, int]:
    return math.ceil(width / stride), math.ceil(height / stride)
