"""What tells the family of a model: its tensors, its labels, and the notes of its exporter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cogwork.drivers.mlmodel.facts import ANY, TensorFacts
from cogwork.drivers.vision.attributes import Family, MlmodelVisionAttributes
from cogwork.drivers.vision.grid import Grid, grid_of
from cogwork.drivers.vision.reading import ModelView
from cogwork.drivers.vision.tables import Table, table, times

_CHANNELS = (1, 3)
_MASKS = 32
"""As exporters have it."""


@dataclass(frozen=True, slots=True)
class Clues:
    outputs: tuple[TensorFacts, ...]
    labels: int | None
    """How many classes have names."""
    size: tuple[int, int] | None
    """Width and height of the input."""
    one_picture: bool
    """Whether the input holds one picture, and not any number of them."""
    notes: Mapping[str, Any]
    family: Family | None
    """As configured."""

    @property
    def task(self) -> str:
        return str(self.notes.get("task", ""))

    @property
    def tables(self) -> list[Table]:
        return [each for each in map(table, self.outputs) if each is not None]

    @property
    def maps(self) -> list[TensorFacts]:
        """The outputs that are pictures, such as masks, or more."""
        return [each for each in self.outputs if table(each) is None and len(each.shape or ()) > 3]

    @property
    def sole(self) -> Table | None:
        """The only output, maps aside."""
        tables = self.tables
        alone = len(tables) == 1 and len(self.maps) == len(self.outputs) - 1
        return tables[0] if alone else None

    def grid(self, rows: int) -> Grid | None:
        return grid_of(rows, *self.size) if self.size is not None and rows != ANY else None

    def picture(self) -> str:
        return f"a {times(self.size)} picture" if self.size is not None else "the picture"

    def beside(self) -> tuple[int, ...]:
        """How many columns may follow the classes: the parts of a mask, the points of a body."""
        if self.task == "pose":
            return (_product(self.notes.get("kpt_shape")),)
        masks = [_masks(each.shape) for each in self.maps if each.shape and len(each.shape) == 4]
        if self.task == "segment":
            return (masks[0] if masks else _MASKS,)
        return (0, *masks[:1])

    def does_nms(self) -> bool:
        """Whether the exporter says so."""
        arguments = self.notes.get("args")
        asked = arguments.get("nms") if isinstance(arguments, Mapping) else None
        return _is_true(self.notes.get("end2end")) or _is_true(asked)


def clues_of(view: ModelView, settings: MlmodelVisionAttributes) -> Clues:
    notes = view.notes or {}
    shape = (view.inputs[0].shape or ()) if view.inputs else ()
    return Clues(
        view.outputs,
        labels=len(view.labels) if view.labels is not None else None,
        size=_size(shape) or _size_noted(notes.get("imgsz")),
        one_picture=shape[:1] == (1,),
        notes=notes,
        family=settings.family,
    )


def _size(shape: tuple[int, ...]) -> tuple[int, int] | None:
    match shape:
        case (_, height, width, channels) if channels in _CHANNELS and ANY not in (height, width):
            return width, height
        case (_, channels, height, width) if channels in _CHANNELS and ANY not in (height, width):
            return width, height
    return None


def _size_noted(note: Any) -> tuple[int, int] | None:
    """Height and width, or the side of a square."""
    sides = _wholes(note)
    if len(sides) not in (1, 2) or min(sides) < 1:
        return None
    return sides[-1], sides[0]


def _masks(shape: tuple[int, ...]) -> int:
    """How many, of pictures with more pixels to either side."""
    return min((extent for extent in shape[1:] if extent != ANY), default=_MASKS)


def _product(note: Any) -> int:
    return math.prod(_wholes(note)) if _wholes(note) else 0


def _wholes(note: Any) -> list[int]:
    """What went through another process has become a float."""
    several = note if isinstance(note, Sequence) and not isinstance(note, str) else [note]
    return [int(each) for each in several if isinstance(each, int | float) and each == each // 1]


def _is_true(note: Any) -> bool:
    return note is True or note == 1 or str(note).lower() == "true"
