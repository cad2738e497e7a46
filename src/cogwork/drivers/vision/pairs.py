"""Models with two outputs: boxes in one, and a score for each class in the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from cogwork.drivers.mlmodel.facts import ANY
from cogwork.drivers.vision.boxes import UNIT, edges, unit
from cogwork.drivers.vision.candidates import Candidates, Fit
from cogwork.drivers.vision.clues import Clues
from cogwork.drivers.vision.reading import BadOutput, DetectorReading, Refusal, Tensors
from cogwork.drivers.vision.sieve import Sieve
from cogwork.drivers.vision.tables import Table, check_shares

_BOX = ("box", "dets", "loc")
"""What an output with boxes is called, in part."""
_KNOWN = ("pred_boxes", "pred_logits", "logits")
"""What transformers call the two, beside which they may tell what is inside of them."""


@dataclass(frozen=True, slots=True)
class Pair:
    boxes: Table
    scores: Table

    @property
    def rows(self) -> int:
        return max(self.boxes.rows, self.scores.rows)

    def __str__(self) -> str:
        return f"the outputs {self.boxes.facts} and {self.scores.facts}"


def pair_of(clues: Clues) -> Pair | None:
    tables = [each for each in clues.tables if each.rank > 2]
    known = [each for each in tables if each.facts.name in _KNOWN]
    if len(known) == 2:
        tables = known
    elif len(tables) != 2 or len(clues.maps) != len(clues.outputs) - 2:
        return None
    pairs = [*_pairs(*tables), *_pairs(*reversed(tables))]
    named = [pair for pair in pairs if any(each in pair.boxes.facts.name.lower() for each in _BOX)]
    return next(iter([*named, *pairs]), None)


def _pairs(first: Table, second: Table) -> Iterator[Pair]:
    for boxes in reversed(first.both_ways()):
        for scores in reversed(second.both_ways()):
            if boxes.columns == 4 and (
                boxes.rows == scores.rows or ANY in (boxes.rows, scores.rows)
            ):
                yield Pair(boxes, scores)


def yolo_pair_reading(clues: Clues, sieve: Sieve) -> DetectorReading | Refusal | None:
    """As the halves of a YOLO without objectness."""
    pair = pair_of(clues)
    if pair is None or clues.family not in (None, "yolo_v8"):
        return None
    grid = clues.grid(pair.rows)
    if clues.family is not None:
        why = "as `family` is set"
    elif grid is not None:
        why = f"{pair.rows} rows are the cells of {clues.picture()}"
    elif clues.labels == pair.scores.columns:
        why = f"{pair.scores.columns} columns of scores are those of the labels"
    else:
        return _refusal(pair, clues)
    return DetectorReading(
        "yolo_v8",
        (
            f"{pair} are read as the boxes and scores of a YOLO: {why}",
            "whether boxes are edges, or centres and sizes, is told by their numbers",
            UNIT,
            *sieve.assumed,
        ),
        partial(_read, pair, sieve),
        letterbox=True,
        pixels="0..1",
    )


def _refusal(pair: Pair, clues: Clues) -> Refusal:
    there = f"there are {clues.labels} labels" if clues.labels is not None else "it has no labels"
    return Refusal(
        (
            f"{pair} look like boxes and the scores of their classes, but {there}, and the rows "
            f"are not as many as the cells of {clues.picture()}. If the boxes are "
            "distances from anchors, the file does not say where these are: export the model with "
            "its decoding. If not, give its labels (`label_path`) or set `family`",
        )
    )


def _read(pair: Pair, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    boxes, classes = pair.boxes.read(tensors, 4), pair.scores.read(tensors, 1)
    check_rows(pair, boxes.shape[1], classes.shape[1])
    best = classes.max(axis=0)
    check_shares(best, pair.scores.facts, "the scores")
    rows = np.flatnonzero(best >= sieve.floor)
    corners = edges(boxes, pair.boxes.facts)[rows] * unit(boxes[:2], fit)
    return sieve.sift(corners, best[rows], classes[:, rows].argmax(axis=0), fit, overlapping=True)


def check_rows(pair: Pair, boxes: int, scores: int) -> None:
    if boxes != scores:
        raise BadOutput(f"{pair} tell of {boxes} boxes and the scores of {scores}")
