"""Boxes as models tell them, and as edges in pixels of the input."""

from __future__ import annotations

import numpy as np

from cogwork.drivers.mlmodel.facts import TensorFacts
from cogwork.drivers.vision.candidates import Fit, Floats
from cogwork.drivers.vision.reading import BadOutput

_LARGEST_PART = 2.0
"""No box leaves a picture so far, and none that is worth telling is so few pixels large."""
_NEARLY_ALL = 0.98

UNIT = "whether boxes are in pixels or in parts of the input is told by their largest number"


def from_centres(boxes: Floats) -> Floats:
    """From [4, N] of centre and size to [N, 4] of edges."""
    centres, halves = boxes[:2].T, boxes[2:4].T / 2
    return np.concatenate((centres - halves, centres + halves), axis=1)


def unit(numbers: Floats, fit: Fit) -> Floats:
    """What [N, 4] boxes are multiplied with to be in pixels, judged by some of their numbers."""
    finite = numbers[np.isfinite(numbers)]
    if np.abs(finite).max(initial=0) > _LARGEST_PART:
        return np.ones(4, np.float32)
    return whole(fit)


def whole(fit: Fit) -> Floats:
    return np.array([fit.input_width, fit.input_height] * 2, np.float32)


def edges(boxes: Floats, facts: TensorFacts) -> Floats:
    """From [4, N] of either kind to [N, 4]: with centres, the second pair often is the smaller."""
    low, high = boxes[:2], boxes[2:4]
    if (high >= low).all(axis=0).sum() >= _NEARLY_ALL * boxes.shape[1]:
        return boxes[:4].T
    if (high >= 0).all(axis=0).sum() >= _NEARLY_ALL * boxes.shape[1]:
        return from_centres(boxes)
    raise BadOutput(
        f'the numbers in the output "{facts.name}" are neither edges nor centres and sizes of '
        "boxes. If they are distances from anchors, the file does not say where these are: export "
        "the model with its decoding"
    )
