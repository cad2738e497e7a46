"""Postprocessing of candidates: score threshold, non-maximum suppression and clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit, Integers
from cogwork.drivers.vision.postprocessing.label_filter import min_confidence
from cogwork.drivers.vision.postprocessing.nms import MAX_CANDIDATES, non_max_suppression, top_k

_DEFAULT_MIN_SCORE = 0.25
"""Default of the YOLO projects: candidates below it are nearly always noise."""


@dataclass(frozen=True, slots=True)
class Postprocessor:
    min_score: float
    iou_threshold: float
    max_detections: int
    assumptions: tuple[str, ...] = ()

    def process(
        self, boxes: Floats, scores: Floats, classes: Integers, fit: ImageFit, *, overlapping: bool
    ) -> Candidates:
        """Return the candidates to report.

        Boxes are [N, 4] of x, y, x, y in pixels of the input. Set `overlapping` if the model may
        return several boxes per object. Boxes are compared before they are clipped to the image, as
        in the reference implementations.
        """
        fractions = _sort_edges(fit.to_normalized(boxes))
        clipped = np.clip(fractions, 0, 1)
        is_valid = np.isfinite(fractions).all(axis=1) & np.isfinite(scores)
        is_valid &= (scores >= self.min_score) & (clipped[:, 2:] > clipped[:, :2]).all(axis=1)
        found = Candidates(fractions, scores, classes).select(is_valid)
        if overlapping:
            found = non_max_suppression(found, self.iou_threshold, self.max_detections)
        else:
            found = top_k(found, self.max_detections)
        return Candidates(np.clip(found.boxes, 0, 1), np.clip(found.scores, 0, 1), found.classes)


def make_postprocessor(settings: MlmodelVisionAttributes) -> Postprocessor:
    if settings.label_confidences:
        # Keep more candidates: some with high scores may still be dropped by their label.
        return Postprocessor(min_confidence(settings), settings.nms_overlap, MAX_CANDIDATES)
    if settings.default_minimum_confidence is not None:
        threshold = min_confidence(settings)
        return Postprocessor(threshold, settings.nms_overlap, settings.maximum_detections)
    assumption = (
        f"results with a confidence below {_DEFAULT_MIN_SCORE} are dropped; set "
        "`default_minimum_confidence` to change this"
    )
    return Postprocessor(
        _DEFAULT_MIN_SCORE, settings.nms_overlap, settings.maximum_detections, (assumption,)
    )


def _sort_edges(boxes: Floats) -> Floats:
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)
