"""Conversion of box formats to edges in pixels of the model input."""

from __future__ import annotations

import numpy as np

from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.candidates import Floats, ImageFit
from cogwork.drivers.vision.decoding.decoder import BadOutput

_MAX_NORMALIZED = 2.0
"""Maximum coordinate of a normalized box; a box with larger coordinates is in pixels.

No normalized box extends this far beyond the image, and no useful box in pixels is this small.
"""
_REQUIRED_SHARE = 0.98

UNIT_ASSUMPTION = "the largest coordinate decides whether boxes are in pixels or normalized"


def cxcywh_to_xyxy(boxes: Floats) -> Floats:
    """Convert [4, N] centers and sizes to [N, 4] edges."""
    centers, halves = boxes[:2].T, boxes[2:4].T / 2
    return np.concatenate((centers - halves, centers + halves), axis=1)


def pixel_scale(coordinates: Floats, fit: ImageFit) -> Floats:
    """Return the factors that convert [N, 4] boxes to pixels.

    Coordinates too large for normalized boxes show that the boxes are already in pixels. The
    factors are then 1.
    """
    finite = coordinates[np.isfinite(coordinates)]
    if np.abs(finite).max(initial=0) > _MAX_NORMALIZED:
        return np.ones(4, np.float32)
    return input_scale(fit)


def input_scale(fit: ImageFit) -> Floats:
    return np.array([fit.input_width, fit.input_height] * 2, np.float32)


def to_xyxy(boxes: Floats, spec: TensorSpec) -> Floats:
    """Convert [4, N] boxes, given as edges or as centers and sizes, to [N, 4] edges.

    In boxes given as edges, the last two values (right, bottom) are not smaller than the first two
    (left, top). In boxes given as centers and sizes, they often are.
    """
    low, high = boxes[:2], boxes[2:4]
    if (high >= low).all(axis=0).sum() >= _REQUIRED_SHARE * boxes.shape[1]:
        return boxes[:4].T
    if (high >= 0).all(axis=0).sum() >= _REQUIRED_SHARE * boxes.shape[1]:
        return cxcywh_to_xyxy(boxes)
    raise BadOutput(
        f'the values of the output "{spec.name}" are neither box edges nor box centers and sizes. '
        "If they are offsets from anchors, the file does not contain the anchors: export the model "
        "with box decoding included"
    )
