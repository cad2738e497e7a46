"""Which YOLO a model is, of those that tell of each cell of a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from cogwork.drivers.mlmodel.facts import ANY
from cogwork.drivers.vision.boxes import UNIT
from cogwork.drivers.vision.clues import Clues
from cogwork.drivers.vision.reading import DetectorReading, Refusal
from cogwork.drivers.vision.sieve import Sieve
from cogwork.drivers.vision.tables import Table
from cogwork.drivers.vision.yolo_rows import Layout, read_v5, read_v8, read_x

_YOLOS = ("yolo_v8", "yolo_v5", "yolox")
_COCO = 84
"""Columns of a box and the classes that most public models know."""


def yolo_reading(clues: Clues, sieve: Sieve) -> DetectorReading | Refusal | None:
    table = clues.sole
    if table is None or clues.family not in (None, *_YOLOS):
        return None
    if clues.family is not None:
        told = _told(clues, table, clues.family)
        fits = told.classes > 0 or ANY in table.extents
        return _reading(clues.family, told, clues, sieve) if fits else None
    if table.rank == 2 and ANY in table.extents:
        return None
    layouts = _by_labels(clues, table) if clues.labels is not None else _by_rows(clues, table)
    layout = next(iter(layouts), None)
    if layout is None:
        return _refusal(clues, table)
    return _reading(_family(clues, layout), layout, clues, sieve)


def _told(clues: Clues, table: Table, family: str) -> Layout:
    """The family is known; which way the table lies may be said by its extents."""
    layout = Layout(table, family != "yolo_v8", clues.beside()[0], certain=True)
    ways = [replace(layout, table=way) for way in table.both_ways()]
    for fits in (
        lambda way: way.classes == clues.labels,
        lambda way: clues.grid(way.table.rows) is not None,
        lambda way: 0 < way.table.columns < way.table.rows,
    ):
        found = [way for way in ways if fits(way)]
        if len(found) == 1:
            return found[0]
    return layout


def _by_labels(clues: Clues, table: Table) -> list[Layout]:
    fitting = [layout for layout in _layouts(clues, table) if layout.classes == clues.labels]
    return sorted(fitting, key=lambda layout: clues.grid(layout.table.rows) is None)


def _by_rows(clues: Clues, table: Table) -> Iterator[Layout]:
    """Without labels only the number of cells tells what are rows, and some habits the rest."""
    for layout in _layouts(clues, table):
        grid = clues.grid(layout.table.rows)
        if grid is not None and layout.classes > 0:
            decoded = not layout.table.upright or layout.table.columns - layout.beside == _COCO
            if layout.objectness != (decoded and grid.anchors == 1):
                yield layout


def _layouts(clues: Clues, table: Table) -> Iterator[Layout]:
    for beside in clues.beside():
        for way in table.both_ways():
            for objectness in (False, True):
                yield Layout(way, objectness, beside)


def _family(clues: Clues, layout: Layout) -> str:
    if not layout.objectness:
        return "yolo_v8"
    grid = clues.grid(layout.table.rows)
    return "yolox" if grid is not None and grid.anchors == 1 else "yolo_v5"


def _refusal(clues: Clues, table: Table) -> Refusal | None:
    sizes = [extent for extent in table.extents if extent != ANY]
    if clues.labels is None:
        return Refusal(
            (
                f"the output {table.facts} may be that of a YOLO, but its extents do not tell "
                f"which: no number of rows fits the cells of {clues.picture()}. Give the labels of "
                "the model (`label_path`), or set `family`",
            )
        )
    if not any(extent > 4 for extent in sizes):
        return None
    least = min(extent for extent in sizes if extent > 4)
    return Refusal(
        (
            f"the output {table.facts} may be that of a YOLO with {least - 4} classes, or with "
            f"{least - 5} and objectness, but there are {clues.labels} labels. Give those that the "
            "model was trained with (`label_path`), or set `family` to have it read as it is",
        )
    )


def _reading(family: str, layout: Layout, clues: Clues, sieve: Sieve) -> DetectorReading:
    read = {"yolo_v8": read_v8, "yolo_v5": read_v5, "yolox": read_x}[family]
    scale = () if family == "yolox" else (UNIT,)
    return DetectorReading(
        family,
        (*_evidence(family, layout, clues), *scale, *sieve.assumed),
        partial(read, layout, sieve),
        letterbox=True,
        corner=family == "yolox",
        pixels="0..255" if family == "yolox" else "0..1",
        bgr=family == "yolox",
    )


def _evidence(family: str, layout: Layout, clues: Clues) -> Iterator[str]:
    table = layout.table
    read = f"the output {table.facts} is read as that of a {_TITLES[family]}"
    if layout.certain:
        yield f"{read}, as `family` is set"
    else:
        yield f"{read}: {_why_columns(layout, clues)}; {_why_rows(layout, clues)}"
    if layout.beside:
        yield f"the last {layout.beside} columns, of masks or points, are not used"
    if clues.labels not in (None, layout.classes) and layout.classes != ANY:
        yield f"the model has {layout.classes} classes, and there are {clues.labels} labels"


_TITLES = {
    "yolo_v8": "YOLO without objectness (v8, v9, v11 and others)",
    "yolo_v5": "YOLO with objectness (v5, v7)",
    "yolox": "YOLOX, whose boxes are told cell by cell",
}


def _why_columns(layout: Layout, clues: Clues) -> str:
    box = "a box, objectness" if layout.objectness else "a box"
    known = "the labels" if clues.labels is not None else "classes"
    return (
        f"{layout.table.columns} columns are {box} and {layout.classes} for the scores of {known}"
    )


def _why_rows(layout: Layout, clues: Clues) -> str:
    rows = layout.table.rows
    grid = clues.grid(rows)
    if rows == ANY:
        return "the number of rows is open"
    if grid is None:
        return f"{rows} rows are no known number of cells, which was let pass"
    boxes = "" if grid.anchors == 1 else f" with {grid.anchors} boxes each"
    return f"{rows} rows are the cells of {clues.picture()}{boxes}"
