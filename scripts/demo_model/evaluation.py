"""How often a detector is right, on conveyors that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scripts.demo_model.data import (
    Boxes,
    Classes,
    Image,
    Sample,
    Truth,
    as_input,
    through_jpeg,
    truth_of,
)
from scripts.demo_model.layers import Floats

from cogwork.drivers.camera.conveyor import Conveyor

UNSEEN_SEEDS = range(1000, 1020)
THRESHOLD = 0.5
_OVERLAP = 0.5
_FIRST_MOMENT, _BETWEEN_MOMENTS = 3.0, 6.7


@dataclass(frozen=True, slots=True)
class Detections:
    location: Boxes
    category: Floats
    score: Floats


Detect = Callable[[Image], Detections]


@dataclass(frozen=True, slots=True)
class Tally:
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.right + other.right, self.wrong + other.wrong, self.missed + other.missed)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


def unseen(
    width: int,
    height: int,
    *,
    moments: int,
    jpeg: int | None = None,
    seeds: Iterable[int] = UNSEEN_SEEDS,
) -> Iterator[Sample]:
    """So many moments of each seed, after JPEG of that quality if one is given."""
    for seed in seeds:
        belt = Conveyor(seed, width, height)
        for moment in range(moments):
            scene = belt.scene(_FIRST_MOMENT + _BETWEEN_MOMENTS * moment)
            picture = belt.render(scene)[0]
            if jpeg is not None:
                picture = through_jpeg(picture, jpeg)
            yield Sample(as_input(picture), truth_of(scene, width, height))


def tally(detect: Detect, samples: Iterable[Sample]) -> Tally:
    return sum((judged(detect(each.image), each.truth) for each in samples), Tally())


def judged(found: Detections, truth: Truth, threshold: float = THRESHOLD) -> Tally:
    """Each part may be found once: by the first, which is the surest, that overlaps it enough."""
    open_boxes, open_classes = truth.boxes, truth.classes
    sure = found.score >= threshold
    for box, kind in zip(found.location[sure], found.category[sure], strict=True):
        match = _match(box, int(kind), open_boxes, open_classes)
        if match is not None:
            open_boxes = np.delete(open_boxes, match, axis=0)
            open_classes = np.delete(open_classes, match)
    right = len(truth.boxes) - len(open_boxes)
    return Tally(right, int(sure.sum()) - right, len(open_boxes))


def _match(box: Boxes, kind: int, boxes: Boxes, classes: Classes) -> int | None:
    overlaps = np.where(classes == kind, overlap(box, boxes), 0)
    if not len(overlaps) or overlaps.max() < _OVERLAP:
        return None
    return int(overlaps.argmax())


def overlap(box: Boxes, boxes: Boxes) -> Floats:
    """Of one with each: the area they share, as a share of the area they cover together."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    shared = _area(high - low)
    together = _area(box[2:] - box[:2]) + _area(boxes[:, 2:] - boxes[:, :2]) - shared
    result: Floats = shared / together
    return result


def _area(sides: Floats) -> Floats:
    area: Floats = np.prod(np.clip(sides, 0, None), axis=-1)
    return area
