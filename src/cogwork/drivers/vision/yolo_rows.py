"""The rows of a YOLO's output: a box each, and a score for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogwork.drivers.mlmodel.facts import ANY
from cogwork.drivers.vision.boxes import from_centres, unit
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats, Numbers
from cogwork.drivers.vision.grid import grid_of
from cogwork.drivers.vision.reading import BadOutput, Tensors
from cogwork.drivers.vision.sieve import Sieve
from cogwork.drivers.vision.tables import Table, check_shares

_ASTRAY = 0.1
"""Part of the picture: how far from their cells the centres of boxes are at most, on the whole."""


@dataclass(frozen=True, slots=True)
class Layout:
    table: Table
    objectness: bool
    """Whether a column tells that there is anything at all."""
    beside: int = 0
    """Columns after those of the classes."""
    certain: bool = False
    """Whether somebody told the family."""

    @property
    def before(self) -> int:
        """Columns before those of the classes."""
        return 5 if self.objectness else 4

    @property
    def classes(self) -> int:
        """ANY where the model leaves it open."""
        columns = self.table.columns
        return columns - self.before - self.beside if columns != ANY else ANY


def read_v8(layout: Layout, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    columns = layout.table.read(tensors, layout.before + layout.beside + 1)
    classes = columns[layout.before : len(columns) - layout.beside]
    best = classes.max(axis=0)
    check_shares(best, layout.table.facts, "the scores")
    rows = np.flatnonzero(best >= sieve.floor)
    boxes = from_centres(columns[:4, rows]) * unit(columns[:2], fit)
    return sieve.sift(boxes, best[rows], classes[:, rows].argmax(axis=0), fit, overlapping=True)


def read_v5(layout: Layout, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    columns = layout.table.read(tensors, layout.before + layout.beside + 1)
    if not layout.certain and _is_raw(columns, fit):
        raise BadOutput(_raw(layout, "told cell by cell", "yolox"))
    rows = _likely(columns, layout, sieve)
    boxes = from_centres(columns[:4, rows]) * unit(columns[:2], fit)
    return _with_objectness(columns[:, rows], boxes, layout, sieve, fit)


def read_x(layout: Layout, sieve: Sieve, tensors: Tensors, fit: Fit) -> Candidates:
    columns = layout.table.read(tensors, layout.before + layout.beside + 1)
    grid = grid_of(columns.shape[1], fit.input_width, fit.input_height)
    if grid is None or grid.anchors != 1:
        raise BadOutput(
            f'the output "{layout.table.facts.name}" has {columns.shape[1]} rows, which is not the '
            f"number of cells of a {fit.input_width}x{fit.input_height} picture: set `family` to "
            "`yolo_v5` if the boxes are decoded"
        )
    if not layout.certain and not _is_raw(columns, fit):
        raise BadOutput(_raw(layout, "decoded", "yolo_v5"))
    rows = _likely(columns, layout, sieve)
    cells = grid.cells(fit.input_width, fit.input_height)[:, rows]
    places, stride = cells[:2], cells[2]
    columns = columns[:, rows]
    boxes = np.concatenate((columns[:2] + places, np.exp(columns[2:4]))) * stride
    return _with_objectness(columns, from_centres(boxes), layout, sieve, fit)


def _likely(columns: Floats, layout: Layout, sieve: Sieve) -> Numbers:
    """No score is above its objectness."""
    check_shares(columns[4], layout.table.facts, "the values of objectness")
    return np.flatnonzero(columns[4] >= sieve.floor)


def _with_objectness(
    columns: Floats, boxes: Floats, layout: Layout, sieve: Sieve, fit: Fit
) -> Candidates:
    classes = columns[layout.before : len(columns) - layout.beside]
    best = classes.max(axis=0)
    check_shares(best, layout.table.facts, "the scores")
    scores: Floats = best * columns[4]
    return sieve.sift(boxes, scores, classes.argmax(axis=0), fit, overlapping=True)


def _is_raw(columns: Floats, fit: Fit) -> bool:
    """Whether the centres of boxes are told from their cells: on the whole they are near these."""
    grid = grid_of(columns.shape[1], fit.input_width, fit.input_height)
    if grid is None or grid.anchors != 1:
        return False
    cells = grid.cells(fit.input_width, fit.input_height)
    size = np.array([[fit.input_width], [fit.input_height]], np.float32)
    places = (cells[:2] + 0.5) * cells[2] / size
    distances = [np.abs(columns[:2] / each - places).max(axis=0) for each in (size, 1)]
    return not any(np.median(each) < _ASTRAY for each in distances)


def _raw(layout: Layout, how: str, family: str) -> str:
    return (
        f'the boxes in the output "{layout.table.facts.name}" are {how}, against what its extents '
        f"let expect: set `family` to `{family}`"
    )
