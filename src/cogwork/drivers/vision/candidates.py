"""Detections of a model as arrays, before labels and the configured confidences are applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Detected boxes with scores and classes, one row each."""

    boxes: Floats
    """[N, 4]: x_min, y_min, x_max, y_max as fractions of the image, from 0 to 1, min <= max."""
    scores: Floats
    """[N], from 0 to 1."""
    classes: Integers
    """[N], class indices of the model."""

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, rows: NDArray[Any]) -> Candidates:
        """Return the given rows, selected by index or by mask."""
        return Candidates(self.boxes[rows], self.scores[rows], self.classes[rows])


@dataclass(frozen=True, slots=True)
class ImageFit:
    """The placement of an image in a model's input.

    A position in the image, given as a fraction from 0 to 1, is at pixel `offset + scale *
    fraction` of the input. For a stretched image, the offset is 0 and the scale is the size of the
    input.
    """

    input_width: int
    input_height: int
    scale_x: float
    scale_y: float
    offset_x: float = 0.0
    offset_y: float = 0.0

    def to_normalized(self, boxes: Floats) -> Floats:
        """Convert [N, 4] boxes (x, y, x, y) from input pixels to image fractions, without
        clamping."""
        offsets = np.array([self.offset_x, self.offset_y] * 2, np.float32)
        scales = np.array([self.scale_x, self.scale_y] * 2, np.float32)
        fractions: Floats = (boxes - offsets) / scales
        return fractions


def stretch_fit(input_width: int, input_height: int) -> ImageFit:
    return ImageFit(input_width, input_height, float(input_width), float(input_height))


def top_k_rows(scores: Floats, rows: Integers, most: int) -> Integers:
    """Return at most `most` rows, highest score first; ties keep their order."""
    values = scores[rows]
    if len(rows) > most:
        threshold = np.partition(values, len(values) - most)[len(values) - most]
        rows, values = rows[values >= threshold], values[values >= threshold]
    return rows[np.argsort(-values, kind="stable")[:most]]
