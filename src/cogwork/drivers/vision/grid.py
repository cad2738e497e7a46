"""The cells of a picture that a YOLO looks into."""

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
    """Row by row, those of the finest stride first."""

    strides: tuple[int, ...]
    anchors: int
    """Boxes of each cell."""

    def cells(self, width: int, height: int) -> Floats:
        """[3, cells]: the column and the row of each, and its stride."""
        return _cells(self.strides, width, height)


@lru_cache(maxsize=8)
def _cells(strides: tuple[int, ...], width: int, height: int) -> Floats:
    levels = [_level(stride, width, height) for stride in strides]
    cells: Floats = np.concatenate(levels, axis=1, dtype=np.float32)
    cells.flags.writeable = False
    return cells


def _level(stride: int, width: int, height: int) -> NDArray[Any]:
    wide, high = _extents(stride, width, height)
    down, across = np.indices((high, wide)).reshape(2, -1)
    return np.stack((across, down, np.full_like(across, stride)))


def grid_of(rows: int, width: int, height: int) -> Grid | None:
    """The one with so many boxes."""
    for strides in _STRIDES:
        cells = sum(math.prod(_extents(stride, width, height)) for stride in strides)
        for anchors in _ANCHORS:
            if rows == cells * anchors:
                return Grid(strides, anchors)
    return None


def _extents(stride: int, width: int, height: int) -> tuple[int, int]:
    return math.ceil(width / stride), math.ceil(height / stride)
