"""End-to-end detectors: models with built-in NMS that output a row per detection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.model_info import DYNAMIC, TensorSpec
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit
from cogwork.drivers.vision.decoding.boxes import UNIT_ASSUMPTION, pixel_scale
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, Tensors
from cogwork.drivers.vision.decoding.model_hints import ModelHints
from cogwork.drivers.vision.decoding.output_table import OutputTable
from cogwork.drivers.vision.postprocessing.postprocessor import Postprocessor

_Flags = NDArray[np.bool_]

_MAX_ROWS = 1000
_MAX_CLASSES = 1 << 20
_REQUIRED_SHARE = 0.98
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """The meaning of each column of a row."""

    box: int
    """First of four columns: left, top, right and bottom edge."""
    score: int
    label: int
    description: str


_ORDERS = (
    ColumnOrder(0, 4, 5, "box, score, class"),
    ColumnOrder(0, 5, 4, "box, class, score"),
    ColumnOrder(2, 1, 0, "class, score, box"),
)
_BATCH_ORDERS = (
    ColumnOrder(1, 6, 5, "image, box, class, score"),
    ColumnOrder(1, 5, 6, "image, box, score, class"),
    ColumnOrder(3, 2, 1, "image, class, score, box"),
)


def match_end_to_end(
    hints: ModelHints, postprocessor: Postprocessor
) -> DetectorDecoder | Mismatch | None:
    if hints.single_table is None or hints.family not in (None, "end_to_end"):
        return None
    _, table = hints.single_table.both_orientations()
    columns = next(
        (table.columns - n for n in hints.extra_column_counts() if table.columns - n in (6, 7)), 0
    )
    why = _explain_match(hints, table, columns)
    if not isinstance(why, str):
        return why
    orders = _BATCH_ORDERS if columns == 7 else _ORDERS
    rows = f"{table.spec} is decoded as one row per detection: {why}"
    alternatives = " or ".join(each.description for each in orders)
    is_openvino = table.rank == 4
    return DetectorDecoder(
        "end_to_end",
        (
            rows,
            f"the values decide which column is which ({alternatives})",
            UNIT_ASSUMPTION,
            *postprocessor.assumptions,
        ),
        partial(_decode, table, postprocessor),
        letterbox=not is_openvino,
        normalization="0..255" if is_openvino else "0..1",
        bgr=is_openvino,
    )


def _explain_match(hints: ModelHints, table: OutputTable, columns: int) -> str | Mismatch | None:
    """Return the evidence that the output has one row per detection, or None without evidence."""
    if hints.family is not None:
        return "as `family` is set" if columns or table.columns == DYNAMIC else None
    if not columns:
        return None
    if hints.has_builtin_nms():
        return "as stated by its exporter"
    if table.rank == 4:
        return "1x1x?x7 is the OpenVINO detection format"
    if table.rank == 2:
        rows_are_detections = hints.is_single_image and hints.label_count != columns
        return f"{columns} columns and a dynamic number of rows" if rows_are_detections else None
    if columns == 7 or hints.match_grid(table.rows) is not None or table.rows > _MAX_ROWS:
        return None
    if hints.label_count in (columns - 5, columns - 4) and table.rows == DYNAMIC:
        return Mismatch(
            (
                f"the output {table.spec} may hold one row per detection, or boxes with the scores "
                f"of {hints.label_count} classes: set `family` to `end_to_end`, `yolo_v8` or "
                "`yolo_v5`",
            )
        )
    if table.rows == DYNAMIC:
        return f"{columns} columns and a dynamic number of rows"
    return f"{columns} columns, and {table.rows} rows do not match {hints.describe_grid()}"


def _decode(
    table: OutputTable, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    columns = table.read(tensors, 6)
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    order = _detect_column_order(columns, table.spec)
    boxes = columns[order.box : order.box + 4].T
    return _postprocess(boxes, columns[order.score], columns[order.label], postprocessor, fit)


def _detect_column_order(columns: Floats, spec: TensorSpec) -> ColumnOrder:
    orders = _BATCH_ORDERS if len(columns) == 7 else _ORDERS
    fitting = [_fits_order(columns, each) for each in orders]
    ordered = [_has_ordered_corners(columns, each) for each in orders]
    # A model may emit some flipped boxes: choose the column order with the fewest flipped boxes.
    scores = [int((fit & way).sum()) for fit, way in zip(fitting, ordered, strict=True)]
    best = scores.index(max(scores))
    if fitting[best].sum() < _REQUIRED_SHARE * columns.shape[1]:
        raise BadOutput(
            f'the columns of the output "{spec.name}" are in an unknown order: expected the edges '
            "of a box, a score from 0 to 1 and an integer class"
        )
    return orders[best]


def _fits_order(columns: Floats, order: ColumnOrder) -> _Flags:
    """Return for each row whether its values fit the column order.

    Unused rows, which often hold zeros or -1, fit every order.
    """
    score, label = columns[order.score], columns[order.label]
    fitting: _Flags = (label == np.floor(label)) & (label >= 0) & (label < _MAX_CLASSES)
    fitting &= (score >= -_TOLERANCE) & (score <= 1 + _TOLERANCE)
    fitting |= (label == -1) | (columns == 0).all(axis=0)
    return fitting


def _has_ordered_corners(columns: Floats, order: ColumnOrder) -> _Flags:
    left, upper, right, lower = columns[order.box : order.box + 4]
    ordered: _Flags = (right >= left) & (lower >= upper)
    return ordered


def _postprocess(
    boxes: Floats, scores: Floats, labels: Floats, postprocessor: Postprocessor, fit: ImageFit
) -> Candidates:
    rows = np.flatnonzero(
        (scores >= postprocessor.min_score) & (labels >= 0) & (labels < _MAX_CLASSES)
    )
    boxes, classes = boxes[rows], labels[rows].astype(np.int64)
    return postprocessor.process(
        boxes * pixel_scale(boxes, fit), scores[rows], classes, fit, overlapping=False
    )
