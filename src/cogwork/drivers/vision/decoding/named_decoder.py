"""Decoder for detectors with separate outputs for boxes, classes and scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit, stretch_fit
from cogwork.drivers.vision.decoding.boxes import input_scale
from cogwork.drivers.vision.decoding.decoder import BadOutput, Tensors
from cogwork.drivers.vision.decoding.output_table import dequantize_output

_MAX_NORMALIZED = 2.0
"""Coordinates above this value are pixels, and scores above it are percentages."""
_MAX_JUDGED = 1000
"""Maximum number of boxes to examine when deciding whether coordinates are pixels."""
_MAX_CLASS = 2.0**31
_ROUNDING = 1e-3
"""Tolerance for rounding errors of computed integers."""


@dataclass(frozen=True, slots=True)
class NamedOutputs:
    """The outputs of a model by role."""

    location: TensorSpec
    score: TensorSpec
    category: TensorSpec | None = None
    """The output with classes. None if the scores have a column per class, or if only one class
    exists."""
    count: TensorSpec | None = None
    is_ambiguous: bool = False
    """Whether category and score may be swapped."""


@dataclass(frozen=True, slots=True)
class NamedDecoder:
    outputs: NamedOutputs
    columns: tuple[int, ...]
    """Columns of the left, top, right and bottom edge of a box."""

    def decode(self, tensors: Tensors, fit: ImageFit) -> Candidates:
        with np.errstate(all="ignore"):
            return self._decode(tensors, fit)

    def _decode(self, tensors: Tensors, fit: ImageFit) -> Candidates:
        boxes = dequantize_output(self.outputs.location, tensors)
        if boxes.size % 4:
            raise BadOutput(
                f"{_describe_output(self.outputs.location, boxes)} does not have 4 values per box"
            )
        count = boxes.size // 4
        boxes = _reshape_rows(boxes, count, 4)
        scores, classes = self._read_scores(tensors, count)
        is_valid = (scores >= 0) & (np.abs(classes) < _MAX_CLASS) & np.isfinite(boxes.sum(axis=1))
        if not is_valid.all():
            boxes, scores, classes = boxes[is_valid], scores[is_valid], classes[is_valid]
        edges = _normalize_edges(boxes[:, self.columns], scores, fit)
        return Candidates(edges, scores, classes.astype(np.int64).clip(min=0))

    def _read_scores(self, tensors: Tensors, count: int) -> tuple[Floats, Floats]:
        """Return scores from 0 to 1 and classes, one per box. Invalid scores are NaN."""
        outputs = self.outputs
        scores = dequantize_output(outputs.score, tensors)
        if outputs.category is None:
            best, classes = _best_class(scores, outputs, count)
            scores = _to_probabilities(best, outputs.score, tensors)
        else:
            category, score = outputs.category, outputs.score
            classes = dequantize_output(category, tensors)
            if outputs.is_ambiguous and _are_swapped(classes, scores):
                category, score, classes, scores = score, category, scores, classes
            scores = _to_probabilities(scores.ravel(), score, tensors)
            classes = _round_classes(classes.ravel(), category)
        if not len(scores) == len(classes) == count:
            raise BadOutput(
                f"the outputs of the model have different lengths: {count} boxes, "
                f"{len(classes)} classes and {len(scores)} scores"
            )
        return _mask_padding_rows(scores, outputs.count, tensors), classes


def _describe_output(spec: TensorSpec, values: NDArray[Any]) -> str:
    return f'the output "{spec.name}" ({"x".join(map(str, values.shape)) or "scalar"})'


def _reshape_rows(values: Floats, rows: int, columns: int) -> Floats:
    """Return the values as [rows, columns], transposed if needed."""
    extents = [extent for extent in values.shape if extent != 1]
    if rows != columns and extents == [columns, rows]:
        return values.reshape(columns, rows).T
    return values.reshape(rows, columns)


def _best_class(scores: Floats, outputs: NamedOutputs, count: int) -> tuple[Floats, Floats]:
    """Return the best score of each box, and its class."""
    if scores.size == count:
        return scores.ravel(), np.zeros(scores.size, np.float32)
    if not count or not scores.size or scores.size % count or count not in scores.shape:
        raise BadOutput(
            f"{_describe_output(outputs.score, scores)} does not have a score per class for "
            f"{count} boxes"
        )
    table = _reshape_rows(scores, count, scores.size // count)
    if np.isnan(table.sum()):
        table = np.where(np.isnan(table), -np.inf, table)
    classes = table.argmax(axis=1)
    return table[np.arange(count), classes], classes.astype(np.float32)


def _to_probabilities(scores: Floats, spec: TensorSpec, tensors: Tensors) -> Floats:
    """Convert scores to 0 to 1. Some models return percentages, others bytes without quantization
    parameters. Infinite scores become NaN."""
    dtype = tensors[spec.name].dtype
    if spec.quantization is None and dtype in (np.uint8, np.int8):
        scores = (scores + 128 if dtype == np.int8 else scores) / np.float32(255)
    scores = np.where(np.isfinite(scores), scores, np.float32(np.nan))
    if (scores > _MAX_NORMALIZED).any():
        scores = scores / np.float32(100)
    return scores.clip(0, 1)


def _round_classes(classes: Floats, spec: TensorSpec) -> Floats:
    is_quantized = spec.quantization is not None
    return np.rint(classes) if is_quantized else np.trunc(classes + np.float32(_ROUNDING))


def _are_swapped(category: Floats, score: Floats) -> bool:
    """Return whether the outputs for category and score are swapped.

    Classes are integers and not all 0. If the values of both outputs are integers, the output with
    values above 1 holds the classes.
    """
    if not _looks_integral(category):
        return _looks_integral(score)
    return _looks_integral(score) and bool(category.max() <= 1 < score.max())


def _looks_integral(values: Floats) -> bool:
    return bool(values.size and values.any() and (values == np.rint(values)).all())


def _mask_padding_rows(scores: Floats, spec: TensorSpec | None, tensors: Tensors) -> Floats:
    """Set the scores of padding rows to NaN."""
    count = dequantize_output(spec, tensors).ravel()[:1] if spec is not None else np.empty(0)
    if not count.size or not np.isfinite(count[0]) or count[0] >= len(scores):
        return scores
    counted = scores.copy()
    counted[max(0, int(count[0] + _ROUNDING)) :] = np.nan
    return counted


def _normalize_edges(edges: Floats, scores: Floats, fit: ImageFit) -> Floats:
    """Convert edges, normalized or in input pixels, to fractions of the image."""
    if _are_pixels(edges, scores):
        edges = fit.to_normalized(edges)
    elif fit != stretch_fit(fit.input_width, fit.input_height):
        edges = fit.to_normalized(edges * input_scale(fit))
    edges = edges.clip(0, 1)
    first, second = edges[:, :2], edges[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)


def _are_pixels(edges: Floats, scores: Floats) -> bool:
    """Return whether edges are in pixels.

    Only the most confident boxes decide, because the other boxes are noise.
    """
    if not len(scores):
        return False
    confident = np.flatnonzero(scores >= scores.max() / 2)[:_MAX_JUDGED]
    farthest = edges[confident].max(axis=1)
    return bool(np.median(farthest) > _MAX_NORMALIZED)
