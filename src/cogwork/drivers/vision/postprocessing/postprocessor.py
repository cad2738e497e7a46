"""Postprocessing of candidates: score threshold, non-maximum suppression and clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogwork.drivers.vision.attributes import MAX_DETECTIONS, MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit, Integers
from cogwork.drivers.vision.postprocessing.label_filter import min_confidence
from cogwork.drivers.vision.postprocessing.nms import non_max_suppression, top_k

MIN_SCORE = 0.001
"""Lowest score of a candidate, as in evaluations of the YOLO projects.

YOLO models return a row for each cell of their grid, nearly all with a score of about 0.
"""


@dataclass(frozen=True, slots=True)
class Postprocessor:
    min_score: float
    iou_threshold: float
    assumptions: tuple[str, ...] = ()

    def process(
        self,
        boxes: Floats,
        scores: Floats,
        classes: Integers,
        fit: ImageFit,
        *,
        overlapping: bool,
        most: int = MAX_DETECTIONS,
    ) -> Candidates:
        """Return at most `most` candidates, highest score first.

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
            found = non_max_suppression(found, self.iou_threshold, most)
        else:
            found = top_k(found, most)
        return Candidates(np.clip(found.boxes, 0, 1), np.clip(found.scores, 0, 1), found.classes)


def make_postprocessor(settings: MlmodelVisionAttributes) -> Postprocessor:
    threshold = min_confidence(settings)
    if threshold >= MIN_SCORE:
        return Postprocessor(threshold, settings.nms_overlap)
    assumption = f"rows with a score below {MIN_SCORE} are dropped"
    return Postprocessor(MIN_SCORE, settings.nms_overlap, (assumption,))


def _sort_edges(boxes: Floats) -> Floats:
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)
