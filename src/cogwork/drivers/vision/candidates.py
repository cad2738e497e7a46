"""What a model found in a picture, before anybody chose from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Things with a place: row by row what, where and how sure."""

    boxes: Floats
    """[N, 4]: x_min, y_min, x_max, y_max as parts of the picture, from 0 to 1, min <= max."""
    scores: Floats
    """[N], from 0 to 1."""
    classes: Numbers
    """[N], the model's own numbers."""

    def __len__(self) -> int:
        return len(self.scores)

    def pick(self, rows: NDArray[Any]) -> Candidates:
        """Those rows, by number or by mask."""
        return Candidates(self.boxes[rows], self.scores[rows], self.classes[rows])


@dataclass(frozen=True, slots=True)
class Fit:
    """How a picture lies in a model's input.

    A point of the picture, as a part of it, is at `offset + scale x part` of the input, in
    the input's pixels. Stretched: no offset, and the input's size as the scale.
    """

    input_width: int
    input_height: int
    scale_x: float
    scale_y: float
    offset_x: float = 0.0
    offset_y: float = 0.0

    def to_picture(self, boxes: Floats) -> Floats:
        """From pixels of the input to parts of the picture; [N, 4] of x, y, x, y. Not clamped."""
        offsets = np.array([self.offset_x, self.offset_y] * 2, np.float32)
        scales = np.array([self.scale_x, self.scale_y] * 2, np.float32)
        parts: Floats = (boxes - offsets) / scales
        return parts


def stretched(input_width: int, input_height: int) -> Fit:
    return Fit(input_width, input_height, float(input_width), float(input_height))
