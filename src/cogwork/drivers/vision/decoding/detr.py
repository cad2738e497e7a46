"""DETR models: a fixed number of object queries, each predicting one box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit
from cogwork.drivers.vision.decoding.boxes import cxcywh_to_xyxy, input_scale
from cogwork.drivers.vision.decoding.decoder import (
    BadOutput,
    DetectorDecoder,
    Normalization,
    Tensors,
)
from cogwork.drivers.vision.decoding.model_hints import ModelHints
from cogwork.drivers.vision.decoding.output_pair import (
    OutputPair,
    check_row_counts,
    find_output_pair,
)
from cogwork.drivers.vision.decoding.output_table import OutputTable
from cogwork.drivers.vision.postprocessing.postprocessor import Postprocessor

_MAX_QUERIES = 1000
_LOGITS = "logits"
_COCO_COLUMNS = (91, 92)
"""Numbers of score columns in models that number the 80 COCO classes by their original ids, which
go from 1 to 90."""
_RF_DETR_NAMES = ["dets", "labels"]
"""Output names of boxes and scores in RF-DETR exports."""
_MAX_NORMALIZED = 2.0
_ROUNDING = 0.01


@dataclass(frozen=True, slots=True)
class DetrOutputs:
    """Boxes and scores, in two outputs or concatenated in one."""

    boxes: OutputTable
    scores: OutputTable | None
    label_count: int | None

    @property
    def score_columns(self) -> int:
        """Number of score columns; DYNAMIC if the model does not fix it."""
        if self.scores is not None:
            return self.scores.columns
        return self.boxes.columns - 4 if self.boxes.columns != DYNAMIC else DYNAMIC

    @property
    def is_rf_detr(self) -> bool:
        return [each.spec.name for each in (self.boxes, self.scores) if each] == _RF_DETR_NAMES

    def read(self, tensors: Tensors) -> tuple[Floats, Floats]:
        """Return centers and sizes [4, N], and scores [N, columns]."""
        if self.scores is None:
            columns = self.boxes.read(tensors, 5)
            return columns[:4], columns[4:].T
        boxes, scores = self.boxes.read(tensors, 4), self.scores.read(tensors, 1)
        check_row_counts(OutputPair(self.boxes, self.scores), boxes.shape[1], scores.shape[1])
        return boxes[:4], scores.T


def match_detr(hints: ModelHints, postprocessor: Postprocessor) -> DetectorDecoder | None:
    if hints.family not in (None, "detr"):
        return None
    detr = _find_outputs(hints)
    if detr is None:
        return None
    return DetectorDecoder(
        "detr",
        (*_explain_match(detr, hints), *postprocessor.assumptions),
        partial(_decode, detr, postprocessor),
        normalization=_choose_normalization(detr),
    )


def _find_outputs(hints: ModelHints) -> DetrOutputs | None:
    """Recognize DETR by its row count: a multiple of 100 that does not match a YOLO grid."""
    pair, is_configured = find_output_pair(hints), hints.family is not None
    if pair is not None:
        is_likely = _is_query_count(pair.rows, hints) or _LOGITS in pair.scores.spec.name
        return (
            DetrOutputs(pair.boxes, pair.scores, hints.label_count)
            if is_configured or is_likely
            else None
        )
    if hints.single_table is None:
        return None
    _, rows_first = hints.single_table.both_orientations()
    fits = hints.label_count is not None and rows_first.columns == 4 + hints.label_count
    is_likely = fits and _is_query_count(rows_first.rows, hints)
    return DetrOutputs(rows_first, None, hints.label_count) if is_configured or is_likely else None


def _is_query_count(rows: int, hints: ModelHints) -> bool:
    return 0 < rows <= _MAX_QUERIES and rows % 100 == 0 and hints.match_grid(rows) is None


def _explain_match(detr: DetrOutputs, hints: ModelHints) -> Iterator[str]:
    outputs = str(detr.boxes.spec)
    if detr.scores is not None:
        outputs = str(OutputPair(detr.boxes, detr.scores)).removeprefix("the outputs ")
    if hints.family is not None:
        why = "as `family` is set"
    elif detr.boxes.rows == DYNAMIC:
        why = "recognized by its name"
    else:
        why = f"{detr.boxes.rows} rows are a query count, not a YOLO grid"
    yield f"{outputs} is decoded as DETR with normalized centers and sizes: {why}"
    match _has_background_class(detr, detr.score_columns):
        case True:
            yield (
                f"the last of {detr.score_columns} score columns is the background class, which "
                "has no label"
            )
        case False:
            yield "classes are independent (sigmoid), without a background class"
        case None:
            yield "the scores decide whether their last column is a background class"
    if _choose_normalization(detr) == "0..1":
        yield (
            "pixel values range from 0 to 1, as for RT-DETR and D-FINE; for other models set "
            "`input_image_mean_value` to [0.485, 0.456, 0.406] and `input_image_std_dev` to "
            "[0.229, 0.224, 0.225]"
        )


def _choose_normalization(detr: DetrOutputs) -> Normalization:
    exclusive = _has_background_class(detr, detr.score_columns)
    usual = exclusive or detr.score_columns in _COCO_COLUMNS or detr.is_rf_detr
    return "imagenet" if usual else "0..1"


def _has_background_class(detr: DetrOutputs, columns: int) -> bool | None:
    """Return whether the scores have a background column: one column more than there are labels.

    Return None if this is unknown.
    """
    if detr.is_rf_detr or columns == 1:
        return False
    if detr.label_count is None or columns not in (detr.label_count, detr.label_count + 1):
        return None
    return columns == detr.label_count + 1


def _decode(
    detr: DetrOutputs, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    boxes, scores = detr.read(tensors)
    _check_normalized(boxes, detr)
    scores, exclusive = _to_probabilities(scores, _has_background_class(detr, scores.shape[1]))
    if exclusive:
        rows, classes = np.arange(len(scores)), scores.argmax(axis=1)
    else:
        # Without a background class, a query may predict several classes: keep all with sufficient
        # scores.
        rows, classes = np.nonzero(scores >= postprocessor.min_score)
    corners = cxcywh_to_xyxy(boxes[:, rows]) * input_scale(fit)
    return postprocessor.process(
        corners, scores[rows, classes], classes, fit, overlapping=False, most=len(scores)
    )


def _check_normalized(boxes: Floats, detr: DetrOutputs) -> None:
    if boxes.size and np.median(boxes) > _MAX_NORMALIZED:
        raise BadOutput(
            f'the boxes in the output "{detr.boxes.spec.name}" are not normalized, but DETR boxes '
            "must be: set another `family`"
        )


def _to_probabilities(scores: Floats, exclusive: bool | None) -> tuple[Floats, bool]:
    """Return probabilities without a background column, and whether the scores had one."""
    finite = scores[np.isfinite(scores)]
    if finite.min(initial=0) >= 0 and finite.max(initial=0) <= 1:
        if exclusive is None:
            exclusive = bool(np.abs(scores.sum(axis=1) - 1).max(initial=0) < _ROUNDING)
    else:
        if exclusive is None:
            exclusive = _is_mostly_background(scores)
        scores = _softmax(scores) if exclusive else _sigmoid(scores)
    return (scores[:, :-1], True) if exclusive else (scores, False)


def _is_mostly_background(logits: Floats) -> bool:
    """Return whether the last column is a background class.

    Most queries find no object. For such a query, the background class has the highest logit, which
    is positive. In a model without a background class, all logits of the query are negative.
    """
    last = logits[:, -1]
    is_background = (last > 0) & (last >= logits.max(axis=1))
    return bool(2 * is_background.sum() > len(is_background))


def _sigmoid(logits: Floats) -> Floats:
    probabilities: Floats = np.reciprocal(1 + np.exp(-logits))
    return probabilities


def _softmax(logits: Floats) -> Floats:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities
