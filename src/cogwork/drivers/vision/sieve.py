"""What of a model's candidates is passed on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats, Numbers
from cogwork.drivers.vision.choose import least_confidence
from cogwork.drivers.vision.nms import POOL, suppress, surest

_FLOOR = 0.25
"""As the makers of YOLO have it: what is less sure is nearly always nothing."""


@dataclass(frozen=True, slots=True)
class Sieve:
    floor: float
    """The least score."""
    overlap: float
    most: int
    assumed: tuple[str, ...] = ()

    def sift(
        self, boxes: Floats, scores: Floats, classes: Numbers, fit: Fit, *, overlapping: bool
    ) -> Candidates:
        """Boxes are [N, 4] of x, y, x, y in pixels of the input.

        `overlapping`: whether the model tells of a thing several times. Boxes are compared before
        they are cut off at the edges of the picture, as the models' makers do it.
        """
        parts = _sorted_edges(fit.to_picture(boxes))
        inside = np.clip(parts, 0, 1)
        sound = np.isfinite(parts).all(axis=1) & np.isfinite(scores)
        sound &= (scores >= self.floor) & (inside[:, 2:] > inside[:, :2]).all(axis=1)
        found = Candidates(parts, scores, classes).pick(sound)
        if overlapping:
            found = suppress(found, self.overlap, self.most)
        else:
            found = surest(found, self.most)
        return Candidates(np.clip(found.boxes, 0, 1), np.clip(found.scores, 0, 1), found.classes)


def sieve_of(settings: MlmodelVisionAttributes) -> Sieve:
    if settings.label_confidences:
        # Some of what is surer than the rest may yet go, for its label.
        return Sieve(least_confidence(settings), settings.nms_overlap, POOL)
    if settings.default_minimum_confidence is not None:
        least = least_confidence(settings)
        return Sieve(least, settings.nms_overlap, settings.maximum_detections)
    assumed = (
        f"what is less sure than {_FLOOR} is left out; set `default_minimum_confidence` to see "
        "more or less"
    )
    return Sieve(_FLOOR, settings.nms_overlap, settings.maximum_detections, (assumed,))


def _sorted_edges(boxes: Floats) -> Floats:
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)
