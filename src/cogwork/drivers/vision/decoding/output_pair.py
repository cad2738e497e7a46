"""Detectors with two outputs: boxes in one, scores per class in the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.vision.candidates import Candidates, ImageFit
from cogwork.drivers.vision.decoding.boxes import UNIT_ASSUMPTION, pixel_scale, to_xyxy
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, Tensors
from cogwork.drivers.vision.decoding.model_hints import ModelHints
from cogwork.drivers.vision.decoding.output_table import OutputTable, check_probabilities
from cogwork.drivers.vision.postprocessing.postprocessor import Postprocessor

_BOX_NAMES = ("box", "dets", "loc")
"""Substrings in the names of outputs with boxes."""
DETR_NAMES = ("pred_boxes", "pred_logits", "logits")
"""Names of the boxes and the scores in exports of the transformers library. These exports may have
further outputs."""


@dataclass(frozen=True, slots=True)
class OutputPair:
    boxes: OutputTable
    scores: OutputTable

    @property
    def rows(self) -> int:
        return max(self.boxes.rows, self.scores.rows)

    def __str__(self) -> str:
        return f"the outputs {self.boxes.spec} and {self.scores.spec}"


def find_output_pair(hints: ModelHints) -> OutputPair | None:
    tables = [each for each in hints.tables if each.rank > 2]
    known = [each for each in tables if each.spec.name in DETR_NAMES]
    if len(known) == 2:
        tables = known
    elif len(tables) != 2 or len(hints.map_outputs) != len(hints.outputs) - 2:
        return None
    pairs = [*_possible_pairs(*tables), *_possible_pairs(*reversed(tables))]
    named = [
        pair for pair in pairs if any(each in pair.boxes.spec.name.lower() for each in _BOX_NAMES)
    ]
    return next(iter([*named, *pairs]), None)


def _possible_pairs(first: OutputTable, second: OutputTable) -> Iterator[OutputPair]:
    for boxes in reversed(first.both_orientations()):
        for scores in reversed(second.both_orientations()):
            if boxes.columns == 4 and (
                boxes.rows == scores.rows or DYNAMIC in (boxes.rows, scores.rows)
            ):
                yield OutputPair(boxes, scores)


def match_yolo_pair(
    hints: ModelHints, postprocessor: Postprocessor
) -> DetectorDecoder | Mismatch | None:
    """Match a YOLO model without objectness that has separate outputs for boxes and scores."""
    pair = find_output_pair(hints)
    if pair is None or hints.family not in (None, "yolo_v8"):
        return None
    grid = hints.match_grid(pair.rows)
    if hints.family is not None:
        why = "as `family` is set"
    elif grid is not None:
        why = f"{pair.rows} rows match {hints.describe_grid()}"
    elif hints.label_count == pair.scores.columns:
        why = f"{pair.scores.columns} score columns match the labels"
    else:
        return _explain_mismatch(pair, hints)
    return DetectorDecoder(
        "yolo_v8",
        (
            f"{pair} are decoded as the boxes and scores of a YOLO: {why}",
            "the values decide whether boxes are edges or centers and sizes",
            UNIT_ASSUMPTION,
            *postprocessor.assumptions,
        ),
        partial(_decode, pair, postprocessor),
        letterbox=True,
        normalization="0..1",
    )


def _explain_mismatch(pair: OutputPair, hints: ModelHints) -> Mismatch:
    labels = (
        f"there are {hints.label_count} labels"
        if hints.label_count is not None
        else "it has no labels"
    )
    return Mismatch(
        (
            f"{pair} may be boxes and scores per class, but {labels}, and the number of rows does "
            f"not match {hints.describe_grid()}. If the boxes are offsets from anchors, the file "
            "does not contain the anchors: export the model with box decoding included. Otherwise "
            "set `label_path` or `family`",
        )
    )


def _decode(
    pair: OutputPair, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    boxes, classes = pair.boxes.read(tensors, 4), pair.scores.read(tensors, 1)
    check_row_counts(pair, boxes.shape[1], classes.shape[1])
    best = classes.max(axis=0)
    check_probabilities(best, pair.scores.spec, "the scores")
    rows = np.flatnonzero(best >= postprocessor.min_score)
    corners = to_xyxy(boxes, pair.boxes.spec)[rows] * pixel_scale(boxes[:2], fit)
    return postprocessor.process(
        corners, best[rows], classes[:, rows].argmax(axis=0), fit, overlapping=True
    )


def check_row_counts(pair: OutputPair, boxes: int, scores: int) -> None:
    if boxes != scores:
        raise BadOutput(f"{pair} have {boxes} boxes but scores for {scores} boxes")
