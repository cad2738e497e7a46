"""YOLO variants that output a row per grid cell: recognition and decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit, Integers
from cogwork.drivers.vision.decoding.boxes import UNIT_ASSUMPTION, cxcywh_to_xyxy, pixel_scale
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, Tensors
from cogwork.drivers.vision.decoding.grid import find_grid
from cogwork.drivers.vision.decoding.model_hints import ModelHints
from cogwork.drivers.vision.decoding.output_table import OutputTable, check_probabilities
from cogwork.drivers.vision.postprocessing.postprocessor import Postprocessor

_YOLO_FAMILIES = ("yolo_v8", "yolo_v5", "yolox")
_COCO_COLUMNS = 84
"""Number of columns for a box and the 80 COCO classes, which most public models detect."""
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


def match_yolo(
    hints: ModelHints, postprocessor: Postprocessor
) -> DetectorDecoder | Mismatch | None:
    table = hints.single_table
    if table is None or hints.family not in (None, *_YOLO_FAMILIES):
        return None
    if hints.family is not None:
        configured = _configured_layout(hints, table, hints.family)
        fits = configured.class_count > 0 or DYNAMIC in table.extents
        return _make_decoder(hints.family, configured, hints, postprocessor) if fits else None
    if table.rank == 2 and DYNAMIC in table.extents:
        return None
    layouts = (
        _match_labels(hints, table) if hints.label_count is not None else _match_grids(hints, table)
    )
    layout = next(iter(layouts), None)
    if layout is None:
        return _explain_mismatch(hints, table)
    return _make_decoder(_layout_family(hints, layout), layout, hints, postprocessor)


def _configured_layout(hints: ModelHints, table: OutputTable, family: str) -> YoloLayout:
    """Return the layout of a configured family; the shape decides the orientation of the table."""
    layout = YoloLayout(
        table, family != "yolo_v8", hints.extra_column_counts()[0], is_configured=True
    )
    orientations = [replace(layout, table=orientation) for orientation in table.both_orientations()]
    for fits in (
        lambda orientation: orientation.class_count == hints.label_count,
        lambda orientation: hints.match_grid(orientation.table.rows) is not None,
        lambda orientation: 0 < orientation.table.columns < orientation.table.rows,
    ):
        found = [orientation for orientation in orientations if fits(orientation)]
        if len(found) == 1:
            return found[0]
    return layout


def _match_labels(hints: ModelHints, table: OutputTable) -> list[YoloLayout]:
    fitting = [
        layout
        for layout in _possible_layouts(hints, table)
        if layout.class_count == hints.label_count
    ]
    return sorted(fitting, key=lambda layout: hints.match_grid(layout.table.rows) is None)


def _match_grids(hints: ModelHints, table: OutputTable) -> Iterator[YoloLayout]:
    """Yield the layouts that are likely for a model without labels.

    The number of rows must match a YOLO grid. A layout with objectness is likely for some grids and
    numbers of columns, and one without for all others.
    """
    for layout in _possible_layouts(hints, table):
        grid = hints.match_grid(layout.table.rows)
        if grid is not None and layout.class_count > 0:
            decoded = (
                not layout.table.rows_first
                or layout.table.columns - layout.extra_columns == _COCO_COLUMNS
            )
            if layout.has_objectness != (decoded and grid.anchors_per_cell == 1):
                yield layout


def _possible_layouts(hints: ModelHints, table: OutputTable) -> Iterator[YoloLayout]:
    for extra_columns in hints.extra_column_counts():
        for orientation in table.both_orientations():
            for objectness in (False, True):
                yield YoloLayout(orientation, objectness, extra_columns)


def _layout_family(hints: ModelHints, layout: YoloLayout) -> str:
    if not layout.has_objectness:
        return "yolo_v8"
    grid = hints.match_grid(layout.table.rows)
    return "yolox" if grid is not None and grid.anchors_per_cell == 1 else "yolo_v5"


def _explain_mismatch(hints: ModelHints, table: OutputTable) -> Mismatch | None:
    sizes = [extent for extent in table.extents if extent != DYNAMIC]
    if hints.label_count is None:
        return Mismatch(
            (
                f"the output {table.spec} may be a YOLO output, but its shape is ambiguous: the "
                f"number of rows does not match {hints.describe_grid()}. Set `label_path` to the "
                "labels of the model, or set `family`",
            )
        )
    if not any(extent > 4 for extent in sizes):
        return None
    least = min(extent for extent in sizes if extent > 4)
    return Mismatch(
        (
            f"the output {table.spec} may be a YOLO output with {least - 4} classes, or with "
            f"{least - 5} classes and objectness, but there are {hints.label_count} labels. Set "
            "`label_path` to the labels that the model was trained with, or set `family` to decode "
            "it without matching labels",
        )
    )


def _make_decoder(
    family: str, layout: YoloLayout, hints: ModelHints, postprocessor: Postprocessor
) -> DetectorDecoder:
    read = {"yolo_v8": _decode_v8, "yolo_v5": _decode_v5, "yolox": _decode_yolox}[family]
    scale = () if family == "yolox" else (UNIT_ASSUMPTION,)
    return DetectorDecoder(
        family,
        (*_explain_match(family, layout, hints), *scale, *postprocessor.assumptions),
        partial(read, layout, postprocessor),
        letterbox=True,
        align_top_left=family == "yolox",
        normalization="0..255" if family == "yolox" else "0..1",
        bgr=family == "yolox",
    )


def _explain_match(family: str, layout: YoloLayout, hints: ModelHints) -> Iterator[str]:
    table = layout.table
    read = f"the output {table.spec} is decoded as {_TITLES[family]}"
    if layout.is_configured:
        yield f"{read}, as `family` is set"
    else:
        yield f"{read}: {_explain_columns(layout, hints)}; {_explain_rows(layout, hints)}"
    if layout.extra_columns:
        yield f"the last {layout.extra_columns} columns (masks or keypoints) are not used"
    if hints.label_count not in (None, layout.class_count) and layout.class_count != DYNAMIC:
        yield (
            f"the model has {layout.class_count} classes, but there are {hints.label_count} labels"
        )


_TITLES = {
    "yolo_v8": "YOLO without objectness (v8, v9, v11 and others)",
    "yolo_v5": "YOLO with objectness (v5, v7)",
    "yolox": "YOLOX with boxes relative to grid cells",
}


def _explain_columns(layout: YoloLayout, hints: ModelHints) -> str:
    box = "a box, objectness" if layout.has_objectness else "a box"
    classes = "scores of the labels" if hints.label_count is not None else "class scores"
    return f"{layout.table.columns} columns are {box} and {layout.class_count} {classes}"


def _explain_rows(layout: YoloLayout, hints: ModelHints) -> str:
    rows = layout.table.rows
    grid = hints.match_grid(rows)
    if rows == DYNAMIC:
        return "the number of rows is dynamic"
    if grid is None:
        return f"{rows} rows match no known YOLO grid; accepted"
    boxes = "" if grid.anchors_per_cell == 1 else f" with {grid.anchors_per_cell} boxes per cell"
    return f"{rows} rows match {hints.describe_grid()}{boxes}"


def _decode_v8(
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


def _decode_v5(
    layout: YoloLayout, postprocessor: Postprocessor, tensors: Tensors, fit: ImageFit
) -> Candidates:
    columns = layout.table.read(tensors, layout.class_offset + layout.extra_columns + 1)
    if not layout.is_configured and _is_undecoded(columns, fit):
        raise BadOutput(_explain_wrong_family(layout, "relative to grid cells", "yolox"))
    rows = _filter_by_objectness(columns, layout, postprocessor)
    boxes = cxcywh_to_xyxy(columns[:4, rows]) * pixel_scale(columns[:2], fit)
    return _decode_with_objectness(columns[:, rows], boxes, layout, postprocessor, fit)


def _decode_yolox(
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
    """Return the rows whose objectness is at least the minimum score.

    All other rows score too low, because the score of a row never exceeds its objectness.
    """
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
    """Return whether boxes are undecoded, which means relative to their cells.

    The centers of most decoded boxes are near their cells.
    """
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
