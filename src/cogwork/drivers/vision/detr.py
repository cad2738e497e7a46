"""The DETR family: a fixed number of questions to a picture, each answered once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cogwork.drivers.mlmodel.facts import ANY
from cogwork.drivers.vision.boxes import from_centres, whole
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats
from cogwork.drivers.vision.clues import Clues
from cogwork.drivers.vision.pairs import Pair, check_rows, pair_of
from cogwork.drivers.vision.reading import BadOutput, DetectorReading, Pixels, Tensors
from cogwork.drivers.vision.sieve import Sieve
from cogwork.drivers.vision.tables import Table

_MOST_QUERIES = 1000
_LOGITS = "logits"
_COCO_IDS = (91, 92)
"""Columns of models that number 80 classes from 1 to 90, as the first ones did."""
_RF_DETR = ["dets", "labels"]
"""What its exporter calls boxes and scores."""
_FARTHEST = 2.0
_ROUNDING = 0.01


@dataclass(frozen=True, slots=True)
class Answers:
    """Boxes and scores, in two outputs or behind one another in one."""

    boxes: Table
    scores: Table | None
    labels: int | None

    @property
    def columns(self) -> int:
        """Of scores; ANY where the model leaves it open."""
        if self.scores is not None:
            return self.scores.columns
        return self.boxes.columns - 4 if self.boxes.columns != ANY else ANY

    @property
    def is_rf(self) -> bool:
        return [each.facts.name for each in (self.boxes, self.scores) if each] == _RF_DETR

    def read(self, tensors: Tensors) -> tuple[Floats, Floats]:
        """Centres and sizes [4, N], and scores [N, columns]."""
        if self.scores is None:
            columns = self.boxes.read(tensors, 5)
            return columns[:4], columns[4:].T
        boxes, scores = self.boxes.read(tensors, 4), self.scores.read(tensors, 1)
        check_rows(Pair(self.boxes, self.scores), boxes.shape[1], scores.shape[1])
        return boxes[:4], scores.T


def detr_reading(clues: Clues, sieve: Sieve) -> DetectorReading | None:
    if clues.family not in (None, "detr"):
        return None
    answers = _answers(clues)
    if answers is None:
        return None
    return DetectorReading(
        "detr",
        (*_evidence(answers, clues), *sieve.assumed),
        partial(_read, answers, sieve),
        pixels=_pixels(answers),
    )


def _answers(clues: Clues) -> Answers | None:
    """By its number of rows: hundreds, and not that of the cells of a picture."""
    pair, told = pair_of(clues), clues.family is not None
    if pair is not None:
        likely = _are_queries(pair.rows, clues) or _LOGITS in pair.scores.facts.name
        return Answers(pair.boxes, pair.scores, clues.labels) if told or likely else None
    if clues.sole is None:
        return None
    _, upright = clues.sole.both_ways()
    fits = clues.labels is not None and upright.columns == 4 + clues.labels
    likely = fits and _are_queries(upright.rows, clues)
    return Answers(upright, None, clues.labels) if told or likely else None


def _are_queries(rows: int, clues: Clues) -> bool:
    return 0 < rows <= _MOST_QUERIES and rows % 100 == 0 and clues.grid(rows) is None


def _evidence(answers: Answers, clues: Clues) -> Iterator[str]:
    outputs = str(answers.boxes.facts)
    if answers.scores is not None:
        outputs = str(Pair(answers.boxes, answers.scores)).removeprefix("the outputs ")
    if clues.family is not None:
        why = "as `family` is set"
    elif answers.boxes.rows == ANY:
        why = "by its name"
    else:
        why = f"{answers.boxes.rows} rows are a number of questions, not of cells"
    yield f"{outputs} is read as the answers of a DETR, centres and sizes in parts: {why}"
    match _exclusive_by_labels(answers, answers.columns):
        case True:
            yield f"the last of {answers.columns} columns of scores is `nothing`, beyond the labels"
        case False:
            yield "the classes do not exclude one another, and none of them is `nothing`"
        case None:
            yield "whether the last column of scores is `nothing` is told by its numbers"
    if _pixels(answers) == "0..1":
        yield (
            "the picture's values go from 0 to 1, as RT-DETR and D-FINE take them; for others set "
            "`input_image_mean_value` to [0.485, 0.456, 0.406] and `input_image_std_dev` to "
            "[0.229, 0.224, 0.225]"
        )


def _pixels(answers: Answers) -> Pixels:
    exclusive = _exclusive_by_labels(answers, answers.columns)
    usual = exclusive or answers.columns in _COCO_IDS or answers.is_rf
    return "imagenet" if usual else "0..1"


def _exclusive_by_labels(answers: Answers, columns: int) -> bool | None:
    """Whether a column more than there are labels says that there is nothing. None: unknown."""
    if answers.is_rf or columns == 1:
        return False
    if answers.labels is None or columns not in (answers.labels, answers.labels + 1):
        return None
    return columns == answers.labels + 1


def _read(answers: Answers, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    boxes, scores = answers.read(tensors)
    _check_parts(boxes, answers)
    scores, exclusive = _shares(scores, _exclusive_by_labels(answers, scores.shape[1]))
    if exclusive:
        rows, classes = np.arange(len(scores)), scores.argmax(axis=1)
    else:
        # One answer may stand for several classes.
        rows, classes = np.nonzero(scores >= sieve.floor)
    sieve = replace(sieve, most=min(sieve.most, len(scores)))
    corners = from_centres(boxes[:, rows]) * whole(fit)
    return sieve.sift(corners, scores[rows, classes], classes, fit, overlapping=False)


def _check_parts(boxes: Floats, answers: Answers) -> None:
    if boxes.size and np.median(boxes) > _FARTHEST:
        raise BadOutput(
            f'the boxes in the output "{answers.boxes.facts.name}" are not in parts of the '
            "picture, as those of a DETR are: set another `family`"
        )


def _shares(scores: Floats, exclusive: bool | None) -> tuple[Floats, bool]:
    """From 0 to 1, without the column of `nothing`; and whether there was one."""
    finite = scores[np.isfinite(scores)]
    if finite.min(initial=0) >= 0 and finite.max(initial=0) <= 1:
        if exclusive is None:
            exclusive = bool(np.abs(scores.sum(axis=1) - 1).max(initial=0) < _ROUNDING)
    else:
        if exclusive is None:
            exclusive = _is_mostly_nothing(scores)
        scores = _softmax(scores) if exclusive else _sigmoid(scores)
    return (scores[:, :-1], True) if exclusive else (scores, False)


def _is_mostly_nothing(logits: Floats) -> bool:
    """Most questions to a picture find nothing. Where a column says so, it is large in their rows;
    where none does, all are below zero."""
    last = logits[:, -1]
    nothing = (last > 0) & (last >= logits.max(axis=1))
    return bool(2 * nothing.sum() > len(nothing))


def _sigmoid(logits: Floats) -> Floats:
    shares: Floats = np.reciprocal(1 + np.exp(-logits))
    return shares


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares
