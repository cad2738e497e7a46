"""Decoders for YOLO outputs: a box and a score per class in each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.vision.boxes import cxcywh_to_xyxy, pixel_scale
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit, Integers
from cogwork.drivers.vision.decoder import BadOutput, Tensors
from cogwork.drivers.vision.grid import find_grid
from cogwork.drivers.vision.output_table import OutputTable, check_probabilities
from cogwork.drivers.vision.postprocessor import Postprocessor

_MAX_CENTER_OFFSET = 0.1
"""Maximum median distance of box centers from their cells, as a fraction of the image."""


@dataclass(frozen=True, slots=True)
class YoloLayout:
    table: OutputTable
    has_objectness: bool
    """Whether a column holds the probability that the box contains any object."""
    extra_columns: int = 0
    """Number of columns after the classes."""
    is_configured: bool = False
    """Whether the family is configured."""

    @property
    def class_offset(self) -> int:
        """Number of columns before the classes."""
        return 5 if self.has_objectness else 4

    @property
    def class_count(self) -> int:
        """Number of classes; DYNAMIC if the model does not fix it."""
        columns = self.table.columns
        return columns - self.class_offset - self.extra_columns if columns != DYNAMIC else DYNAMIC


def decode_v8(
    layout: YoloLayout, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    columns = layout.table.read(tensors, layout.class_offset + layout.extra_columns + 1)
    classes = columns[layout.class_offset : len(columns) - layout.extra_columns]
    best = classes.max(axis=0)
    check_probabilities(best, layout.table.spec, "the scores")
    rows = np.flatnonzero(best >= postprocessor.min_score)
    boxes = cxcywh_to_xyxy(columns[:4, rows]) * pixel_scale(columns[:2], fit)
    return postprocessor.process(
        boxes, best[rows], classes[:, rows].argmax(axis=0), fit, overlapping=True
    )


def decode_v5(
    layout: YoloLayout, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    columns = layout.table.read(tensors, layout.class_offset + layout.extra_columns + 1)
    if not layout.is_configured and _is_undecoded(columns, fit):
        raise BadOutput(_explain_wrong_family(layout, "relative to grid cells", "yolox"))
    rows = _filter_by_objectness(columns, layout, postprocessor)
    boxes = cxcywh_to_xyxy(columns[:4, rows]) * pixel_scale(columns[:2], fit)
    return _decode_with_objectness(columns[:, rows], boxes, layout, postprocessor, fit)


def decode_yolox(
    layout: YoloLayout, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    columns = layout.table.read(tensors, layout.class_offset + layout.extra_columns + 1)
    grid = find_grid(columns.shape[1], fit.input_width, fit.input_height)
    if grid is None or grid.anchors_per_cell != 1:
        raise BadOutput(
            f'the output "{layout.table.spec.name}" has {columns.shape[1]} rows, which does not '
            f"match the YOLO grid of a {fit.input_width}x{fit.input_height} image: set `family` to "
            "`yolo_v5` if the boxes are decoded"
        )
    if not layout.is_configured and not _is_undecoded(columns, fit):
        raise BadOutput(_explain_wrong_family(layout, "decoded", "yolo_v5"))
    rows = _filter_by_objectness(columns, layout, postprocessor)
    cells = grid.cells(fit.input_width, fit.input_height)[:, rows]
    centers, stride = cells[:2], cells[2]
    columns = columns[:, rows]
    boxes = np.concatenate((columns[:2] + centers, np.exp(columns[2:4]))) * stride
    return _decode_with_objectness(columns, cxcywh_to_xyxy(boxes), layout, postprocessor, fit)


def _filter_by_objectness(
    columns: Floats, layout: YoloLayout, postprocessor: Postprocessor
) -> Integers:
    """Return the rows with enough objectness, which is an upper bound of the score."""
    check_probabilities(columns[4], layout.table.spec, "the objectness values")
    return np.flatnonzero(columns[4] >= postprocessor.min_score)


def _decode_with_objectness(
    columns: Floats, boxes: Floats, layout: YoloLayout, postprocessor: Postprocessor, fit: ImageFit
) -> Candidates:
    classes = columns[layout.class_offset : len(columns) - layout.extra_columns]
    best = classes.max(axis=0)
    check_probabilities(best, layout.table.spec, "the scores")
    scores: Floats = best * columns[4]
    return postprocessor.process(boxes, scores, classes.argmax(axis=0), fit, overlapping=True)


def _is_undecoded(columns: Floats, fit: ImageFit) -> bool:
    """Return whether boxes are relative to their cells: decoded centers are mostly near their
    cells."""
    grid = find_grid(columns.shape[1], fit.input_width, fit.input_height)
    if grid is None or grid.anchors_per_cell != 1:
        return False
    cells = grid.cells(fit.input_width, fit.input_height)
    size = np.array([[fit.input_width], [fit.input_height]], np.float32)
    centers = (cells[:2] + 0.5) * cells[2] / size
    distances = [np.abs(columns[:2] / each - centers).max(axis=0) for each in (size, 1)]
    return not any(np.median(each) < _MAX_CENTER_OFFSET for each in distances)


def _explain_wrong_family(layout: YoloLayout, how: str, family: str) -> str:
    return (
        f'the boxes in the output "{layout.table.spec.name}" are {how}, contrary to what its shape '
        f"suggests: set `family` to `{family}`"
    )
