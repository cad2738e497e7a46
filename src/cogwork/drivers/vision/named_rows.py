"""Detections of models that tell boxes, classes and scores apart by name, out of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.facts import TensorFacts
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.boxes import whole
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats, stretched
from cogwork.drivers.vision.choose import surest_rows, wanted_rows
from cogwork.drivers.vision.reading import BadOutput, Tensors
from cogwork.drivers.vision.tables import numbers
from cogwork.resource.labels import Labels

_LARGEST_PART = 2.0
"""Parts of a picture that are beyond this are pixels, and scores are percents."""
_LARGEST_CLASS = 2.0**31
_NEARLY = 1e-3
"""What is missing from whole numbers that were calculated."""


@dataclass(frozen=True, slots=True)
class NamedOutputs:
    """Which of a model's outputs is what."""

    location: TensorFacts
    score: TensorFacts
    category: TensorFacts | None = None
    """None: the score tells the class, or there is one."""
    count: TensorFacts | None = None
    undecided: bool = False
    """Whether category and score may be the other way round."""


@dataclass(frozen=True, slots=True)
class NamedRows:
    roles: NamedOutputs
    columns: tuple[int, ...]
    """Where in a box the left, upper, right and lower edge is."""
    labels: Labels | None
    settings: MlmodelVisionAttributes
    """Rows that are not reported anyway are left out early: there may be very many."""

    def read(self, tensors: Tensors, fit: Fit) -> Candidates:
        with np.errstate(all="ignore"):
            return self._read(tensors, fit)

    def _read(self, tensors: Tensors, fit: Fit) -> Candidates:
        boxes = numbers(self.roles.location, tensors)
        if boxes.size % 4:
            raise BadOutput(f"{_given(self.roles.location, boxes)} does not hold 4 numbers a box")
        count = boxes.size // 4
        boxes = _table(boxes, count, 4)
        scores, classes = self._scored(tensors, count)
        sound = (scores > 0) & (np.abs(classes) < _LARGEST_CLASS) & np.isfinite(boxes.sum(axis=1))
        indices = np.where(sound, classes, 0).astype(np.int64).clip(min=0)
        scores = np.where(sound, scores, np.float32(np.nan))
        wanted = wanted_rows(scores, indices, self.labels, self.settings)
        rows = surest_rows(scores, wanted, self.settings.maximum_detections)
        edges = boxes[rows][:, self.columns]
        return Candidates(_parts(edges, scores[rows], fit), scores[rows], indices[rows])

    def _scored(self, tensors: Tensors, count: int) -> tuple[Floats, Floats]:
        """The scores, from 0 to 1, and the classes of so many boxes. What does not count is NaN."""
        roles = self.roles
        scores = numbers(roles.score, tensors)
        if roles.category is None:
            best, classes = _best(scores, roles, count)
            scores = _shares(best, roles.score, tensors)
        else:
            category, score = roles.category, roles.score
            classes = numbers(category, tensors)
            if roles.undecided and _is_other_way_round(classes, scores):
                category, score, classes, scores = score, category, scores, classes
            scores = _shares(scores.ravel(), score, tensors)
            classes = _wholes(classes.ravel(), category)
        if not len(scores) == len(classes) == count:
            raise BadOutput(
                "the outputs of the model do not fit together: they tell of "
                f"{count} boxes, {len(classes)} classes and {len(scores)} scores"
            )
        return _counted(scores, roles.count, tensors), classes


def _given(facts: TensorFacts, values: NDArray[Any]) -> str:
    return f'the output "{facts.name}" ({"x".join(map(str, values.shape)) or "scalar"})'


def _table(values: Floats, rows: int, columns: int) -> Floats:
    """Rows first, whichever way they come."""
    extents = [extent for extent in values.shape if extent != 1]
    if rows != columns and extents == [columns, rows]:
        return values.reshape(columns, rows).T
    return values.reshape(rows, columns)


def _best(scores: Floats, roles: NamedOutputs, count: int) -> tuple[Floats, Floats]:
    """The best score of each box, and its class."""
    if scores.size == count:
        return scores.ravel(), np.zeros(scores.size, np.float32)
    if not count or not scores.size or scores.size % count or count not in scores.shape:
        raise BadOutput(
            f"{_given(roles.score, scores)} does not hold a score for each class of {count} boxes"
        )
    table = _table(scores, count, scores.size // count)
    if np.isnan(table.sum()):
        table = np.where(np.isnan(table), -np.inf, table)
    classes = table.argmax(axis=1)
    return table[np.arange(count), classes], classes.astype(np.float32)


def _shares(scores: Floats, facts: TensorFacts, tensors: Tensors) -> Floats:
    """From 0 to 1. Some models tell percents, some bytes without saying what these stand for. What
    is infinite becomes NaN."""
    kind = tensors[facts.name].dtype
    if facts.quantisation is None and kind in (np.uint8, np.int8):
        scores = (scores + 128 if kind == np.int8 else scores) / np.float32(255)
    scores = np.where(np.isfinite(scores), scores, np.float32(np.nan))
    if (scores > _LARGEST_PART).any():
        scores = scores / np.float32(100)
    return scores.clip(0, 1)


def _wholes(classes: Floats, facts: TensorFacts) -> Floats:
    quantised = facts.quantisation is not None
    return np.rint(classes) if quantised else np.trunc(classes + np.float32(_NEARLY))


def _is_other_way_round(category: Floats, score: Floats) -> bool:
    """Classes are whole numbers, and not all 0; also beside scores that happen to be whole."""
    if not _look_whole(category):
        return _look_whole(score)
    return _look_whole(score) and bool(category.max() <= 1 < score.max())


def _look_whole(values: Floats) -> bool:
    return bool(values.size and values.any() and (values == np.rint(values)).all())


def _counted(scores: Floats, facts: TensorFacts | None, tensors: Tensors) -> Floats:
    """Without those of rows that only fill the tensor up."""
    count = numbers(facts, tensors).ravel()[:1] if facts is not None else np.empty(0)
    if not count.size or not np.isfinite(count[0]) or count[0] >= len(scores):
        return scores
    counted = scores.copy()
    counted[max(0, int(count[0] + _NEARLY)) :] = np.nan
    return counted


def _parts(edges: Floats, scores: Floats, fit: Fit) -> Floats:
    """Of the picture, from edges in parts or pixels of the input."""
    if _are_pixels(edges, scores):
        edges = fit.to_picture(edges)
    elif fit != stretched(fit.input_width, fit.input_height):
        edges = fit.to_picture(edges * whole(fit))
    edges = edges.clip(0, 1)
    first, second = edges[:, :2], edges[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)


def _are_pixels(edges: Floats, scores: Floats) -> bool:
    """Told by the boxes that the model is rather sure of: others may be anything."""
    if not len(scores):
        return False
    farthest = edges[scores >= scores.max() / 2].max(axis=1)
    return bool(np.median(farthest) > _LARGEST_PART)
