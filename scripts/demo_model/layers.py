"""The trained network as plain numbers: what every export is built from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scripts.demo_model.data import HEIGHT, WIDTH

STRIDE = 8
ROWS, COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
DETECTIONS = 32
FAINTEST = 0.05
"""A row that scores less is all zeros: it is nothing."""
HIDDEN = -50.0
"""The logit of a cell that is no peak."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of 3x3, or of 1x1 if it is the last one."""

    kernel: Floats
    """Outputs, inputs, rows, columns."""
    bias: Floats
    stride: int = 1
    dilation: int = 1
    residual: bool = False
    """Whether its input is added to its output."""
    rectified: bool = True

    @property
    def padding(self) -> tuple[int, int]:
        """Before and after; as TensorFlow calls SAME, for sides that are even."""
        if self.kernel.shape[-1] == 1:
            return 0, 0
        return (0, 1) if self.stride == 2 else (self.dilation, self.dilation)


def cell_centres() -> Floats:
    """In cells: y and x of each, row by row."""
    y, x = np.mgrid[0:ROWS, 0:COLUMNS]
    return np.stack([y.ravel(), x.ravel()], axis=1).astype(np.float32) + np.float32(0.5)


def cell_size() -> Floats:
    """Its height and width, where those of the picture are 1."""
    return np.array([1 / ROWS, 1 / COLUMNS], np.float32)
