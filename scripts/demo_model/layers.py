"""The weights of the trained network as arrays, which every export uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scripts.demo_model.data import HEIGHT, WIDTH

STRIDE = 8
ROWS, COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
DETECTIONS = 32
MIN_SCORE = 0.05
"""Minimum score; rows below it are set to zero."""
SUPPRESSED_LOGIT = -50.0
"""Logit of a cell that is not a peak."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layer:
    """A 3x3 convolution, or 1x1 in the last layer."""

    kernel: Floats
    """Outputs, inputs, rows, columns."""
    bias: Floats
    stride: int = 1
    dilation: int = 1
    residual: bool = False
    """Whether the input of the layer is added to its output."""
    rectified: bool = True

    @property
    def padding(self) -> tuple[int, int]:
        """Padding before and after: TensorFlow's SAME, for even sizes."""
        if self.kernel.shape[-1] == 1:
            return 0, 0
        return (0, 1) if self.stride == 2 else (self.dilation, self.dilation)


def cell_centers() -> Floats:
    """Return y and x of each cell, in cells and row by row."""
    y, x = np.mgrid[0:ROWS, 0:COLUMNS]
    return np.stack([y.ravel(), x.ravel()], axis=1).astype(np.float32) + np.float32(0.5)


def cell_size() -> Floats:
    """Return the height and width of a cell, relative to the image."""
    return np.array([1 / ROWS, 1 / COLUMNS], np.float32)
