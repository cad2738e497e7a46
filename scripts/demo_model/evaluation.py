"""Precision and recall of a detector, on conveyors outside the training set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scripts.demo_model.data import (
    Boxes,
    Classes,
    GroundTruth,
    Image,
    Sample,
    jpeg_roundtrip,
    make_ground_truth,
    to_network_input,
)
from scripts.demo_model.layers import Floats

from cogwork.drivers.camera.conveyor import Conveyor

UNSEEN_SEEDS = range(1000, 1020)
THRESHOLD = 0.5
_MIN_IOU = 0.5
_FIRST_TIME, _TIME_STEP = 3.0, 6.7


@dataclass(frozen=True, slots=True)
class Detections:
    location: Boxes
    category: Floats
    score: Floats


Detect = Callable[[Image], Detections]


@dataclass(frozen=True, slots=True)
class MatchCounts:
    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0

    def __add__(self, other: MatchCounts) -> MatchCounts:
        return MatchCounts(
            self.true_positives + other.true_positives,
            self.false_positives + other.false_positives,
            self.false_negatives + other.false_negatives,
        )

    @property
    def precision(self) -> float:
        return self.true_positives / max(1, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        return self.true_positives / max(1, self.true_positives + self.false_negatives)


def render_unseen(
    width: int,
    height: int,
    *,
    moments: int,
    jpeg: int | None = None,
    seeds: Iterable[int] = UNSEEN_SEEDS,
) -> Iterator[Sample]:
    """Render samples at several moments of each seed, optionally compressed as JPEG."""
    for seed in seeds:
        belt = Conveyor(seed, width, height)
        for moment in range(moments):
            scene = belt.scene_at(_FIRST_TIME + _TIME_STEP * moment)
            picture = belt.render(scene)[0]
            if jpeg is not None:
                picture = jpeg_roundtrip(picture, jpeg)
            yield Sample(to_network_input(picture), make_ground_truth(scene, width, height))


def evaluate(detect: Detect, samples: Iterable[Sample]) -> MatchCounts:
    return sum(
        (match_detections(detect(each.image), each.truth) for each in samples), MatchCounts()
    )


def match_detections(
    found: Detections, truth: GroundTruth, threshold: float = THRESHOLD
) -> MatchCounts:
    """Match each part with the most confident detection that overlaps it enough."""
    open_boxes, open_classes = truth.boxes, truth.classes
    sure = found.score >= threshold
    for box, kind in zip(found.location[sure], found.category[sure], strict=True):
        match = _find_match(box, int(kind), open_boxes, open_classes)
        if match is not None:
            open_boxes = np.delete(open_boxes, match, axis=0)
            open_classes = np.delete(open_classes, match)
    right = len(truth.boxes) - len(open_boxes)
    return MatchCounts(right, int(sure.sum()) - right, len(open_boxes))


def _find_match(box: Boxes, kind: int, boxes: Boxes, classes: Classes) -> int | None:
    overlaps = np.where(classes == kind, iou(box, boxes), 0)
    if not len(overlaps) or overlaps.max() < _MIN_IOU:
        return None
    return int(overlaps.argmax())


def iou(box: Boxes, boxes: Boxes) -> Floats:
    """Return the intersection over union of one box with each of the others."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    shared = _area(high - low)
    together = _area(box[2:] - box[:2]) + _area(boxes[:, 2:] - boxes[:, :2]) - shared
    result: Floats = shared / together
    return result


def _area(sides: Floats) -> Floats:
    area: Floats = np.prod(np.clip(sides, 0, None), axis=-1)
    return area
