"""Models that choose by themselves: a row for each thing found, with its box, score and class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.facts import ANY, TensorFacts
from cogwork.drivers.vision.boxes import UNIT, unit
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats
from cogwork.drivers.vision.clues import Clues
from cogwork.drivers.vision.reading import BadOutput, DetectorReading, Refusal, Tensors
from cogwork.drivers.vision.sieve import Sieve
from cogwork.drivers.vision.tables import Table

_Flags = NDArray[np.bool_]

_MOST_ROWS = 1000
_MOST_CLASSES = 1 << 20
_NEARLY_ALL = 0.98
_SLACK = 0.05


@dataclass(frozen=True, slots=True)
class Order:
    """Which column of a row is what."""

    box: int
    """The first of four: left, upper, right and lower edge."""
    score: int
    label: int
    said: str


_ORDERS = (
    Order(0, 4, 5, "box, score, class"),
    Order(0, 5, 4, "box, class, score"),
    Order(2, 1, 0, "class, score, box"),
)
_ORDERS_OF_A_BATCH = (
    Order(1, 6, 5, "picture, box, class, score"),
    Order(1, 5, 6, "picture, box, score, class"),
    Order(3, 2, 1, "picture, class, score, box"),
)


def end_to_end_reading(clues: Clues, sieve: Sieve) -> DetectorReading | Refusal | None:
    if clues.sole is None or clues.family not in (None, "end_to_end"):
        return None
    _, table = clues.sole.both_ways()
    columns = next((table.columns - n for n in clues.beside() if table.columns - n in (6, 7)), 0)
    why = _why(clues, table, columns)
    if not isinstance(why, str):
        return why
    orders = _ORDERS_OF_A_BATCH if columns == 7 else _ORDERS
    rows = f"{table.facts} is read as rows of things found: {why}"
    said = " or ".join(each.said for each in orders)
    of_openvino = table.rank == 4
    return DetectorReading(
        "end_to_end",
        (rows, f"which column is what ({said}) is told by their numbers", UNIT, *sieve.assumed),
        partial(_read, table, sieve),
        letterbox=not of_openvino,
        pixels="0..255" if of_openvino else "0..1",
        bgr=of_openvino,
    )


def _why(clues: Clues, table: Table, columns: int) -> str | Refusal | None:
    """What speaks for it, if anything does."""
    if clues.family is not None:
        return "as `family` is set" if columns or table.columns == ANY else None
    if not columns:
        return None
    if clues.does_nms():
        return "as its exporter notes"
    if table.rank == 4:
        return "1x1x?x7 is how OpenVINO has it"
    if table.rank == 2:
        rows_are_things = clues.one_picture and clues.labels != columns
        return f"{columns} columns of any number of rows" if rows_are_things else None
    if columns == 7 or clues.grid(table.rows) is not None or table.rows > _MOST_ROWS:
        return None
    if clues.labels in (columns - 5, columns - 4) and table.rows == ANY:
        return Refusal(
            (
                f"the output {table.facts} may be rows of things found, or boxes with the scores "
                f"of {clues.labels} classes: set `family` to `end_to_end`, `yolo_v8` or `yolo_v5`",
            )
        )
    if table.rows == ANY:
        return f"{columns} columns of any number of rows"
    return f"{columns} columns, and {table.rows} rows are not the cells of {clues.picture()}"


def _read(table: Table, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    columns = table.read(tensors, 6)
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    order = _order(columns, table.facts)
    boxes = columns[order.box : order.box + 4].T
    return _sifted(boxes, columns[order.score], columns[order.label], sieve, fit)


def _order(columns: Floats, facts: TensorFacts) -> Order:
    orders = _ORDERS_OF_A_BATCH if len(columns) == 7 else _ORDERS
    fits = [_fits(columns, each) for each in orders]
    upright = [_are_upright(columns, each) for each in orders]
    # A model may have turned a box over; it is the order in which most are not that counts.
    scores = [int((fit & way).sum()) for fit, way in zip(fits, upright, strict=True)]
    best = scores.index(max(scores))
    if fits[best].sum() < _NEARLY_ALL * columns.shape[1]:
        raise BadOutput(
            f'the columns of the output "{facts.name}" are in no known order: no two of them are '
            "scores from 0 to 1 and whole numbers of classes, beside the edges of boxes"
        )
    return orders[best]


def _fits(columns: Floats, order: Order) -> _Flags:
    """Row by row. Rows that were not needed are often zeros, or -1."""
    score, label = columns[order.score], columns[order.label]
    fits: _Flags = (label == np.floor(label)) & (label >= 0) & (label < _MOST_CLASSES)
    fits &= (score >= -_SLACK) & (score <= 1 + _SLACK)
    fits |= (label == -1) | (columns == 0).all(axis=0)
    return fits


def _are_upright(columns: Floats, order: Order) -> _Flags:
    left, upper, right, lower = columns[order.box : order.box + 4]
    upright: _Flags = (right >= left) & (lower >= upper)
    return upright


def _sifted(boxes: Floats, scores: Floats, labels: Floats, sieve: Sieve, fit: Fit) -> Candidates:
    rows = np.flatnonzero((scores >= sieve.floor) & (labels >= 0) & (labels < _MOST_CLASSES))
    boxes, classes = boxes[rows], labels[rows].astype(np.int64)
    return sieve.sift(boxes * unit(boxes, fit), scores[rows], classes, fit, overlapping=False)
