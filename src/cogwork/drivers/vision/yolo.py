"""Recognition of YOLO variants that output a row per grid cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.vision.boxes import UNIT_ASSUMPTION
from cogwork.drivers.vision.decoder import DetectorDecoder, Mismatch
from cogwork.drivers.vision.model_hints import ModelHints
from cogwork.drivers.vision.output_table import OutputTable
from cogwork.drivers.vision.postprocessor import Postprocessor
from cogwork.drivers.vision.yolo_decoder import YoloLayout, decode_v5, decode_v8, decode_yolox

_YOLO_FAMILIES = ("yolo_v8", "yolo_v5", "yolox")
_COCO_COLUMNS = 84
"""Columns of a box and the 80 COCO classes, which most public models use."""


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
    """Match without labels: the grid identifies the rows, and usual export formats the columns."""
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
    read = {"yolo_v8": decode_v8, "yolo_v5": decode_v5, "yolox": decode_yolox}[family]
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
