"""Hints at the family of a model: its tensors, its labels and the metadata of its exporter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cogwork.drivers.mlmodel.model_info import DYNAMIC, TensorSpec
from cogwork.drivers.vision.attributes import Family, MlmodelVisionAttributes
from cogwork.drivers.vision.decoding.decoder import ModelView
from cogwork.drivers.vision.decoding.grid import Grid, find_grid
from cogwork.drivers.vision.decoding.output_table import OutputTable, as_table, format_shape

_CHANNELS = (1, 3)
_DEFAULT_MASK_COUNT = 32
"""Default number of masks in models of the usual exporters."""


@dataclass(frozen=True, slots=True)
class ModelHints:
    outputs: tuple[TensorSpec, ...]
    label_count: int | None
    """Number of classes with a label."""
    input_size: tuple[int, int] | None
    """Width and height of the input."""
    is_single_image: bool
    """Whether the input has a fixed batch size of 1."""
    properties: Mapping[str, Any]
    family: Family | None
    """The configured family."""

    @property
    def task(self) -> str:
        return str(self.properties.get("task", ""))

    @property
    def tables(self) -> list[OutputTable]:
        return [each for each in map(as_table, self.outputs) if each is not None]

    @property
    def map_outputs(self) -> list[TensorSpec]:
        """Feature maps: outputs with four or more dimensions that are not tables, such as masks."""
        return [
            each for each in self.outputs if as_table(each) is None and len(each.shape or ()) > 3
        ]

    @property
    def single_table(self) -> OutputTable | None:
        """The table, if the model has only one and all other outputs are feature maps, else
        None."""
        tables = self.tables
        is_single = len(tables) == 1 and len(self.map_outputs) == len(self.outputs) - 1
        return tables[0] if is_single else None

    def match_grid(self, rows: int) -> Grid | None:
        return (
            find_grid(rows, *self.input_size)
            if self.input_size is not None and rows != DYNAMIC
            else None
        )

    def describe_grid(self) -> str:
        size = f"a {format_shape(self.input_size)}" if self.input_size is not None else "the"
        return f"the YOLO grid of {size} image"

    def extra_column_counts(self) -> tuple[int, ...]:
        """Return the possible numbers of columns for masks or keypoints after the class columns."""
        if self.task == "pose":
            return (_parse_product(self.properties.get("kpt_shape")),)
        masks = [
            _mask_count(each.shape)
            for each in self.map_outputs
            if each.shape and len(each.shape) == 4
        ]
        if self.task == "segment":
            return (masks[0] if masks else _DEFAULT_MASK_COUNT,)
        return (0, *masks[:1])

    def has_builtin_nms(self) -> bool:
        """Return whether the exporter declares built-in non-maximum suppression."""
        arguments = self.properties.get("args")
        with_nms = arguments.get("nms") if isinstance(arguments, Mapping) else None
        return _is_true(self.properties.get("end2end")) or _is_true(with_nms)


def gather_hints(view: ModelView, settings: MlmodelVisionAttributes) -> ModelHints:
    metadata = view.properties or {}
    shape = (view.inputs[0].shape or ()) if view.inputs else ()
    return ModelHints(
        view.outputs,
        label_count=len(view.labels) if view.labels is not None else None,
        input_size=_image_size(shape) or _parse_image_size(metadata.get("imgsz")),
        is_single_image=shape[:1] == (1,),
        properties=metadata,
        family=settings.family,
    )


def _image_size(shape: tuple[int, ...]) -> tuple[int, int] | None:
    match shape:
        case (_, height, width, channels) if channels in _CHANNELS and DYNAMIC not in (
            height,
            width,
        ):
            return width, height
        case (_, channels, height, width) if channels in _CHANNELS and DYNAMIC not in (
            height,
            width,
        ):
            return width, height
    return None


def _parse_image_size(value: Any) -> tuple[int, int] | None:
    """Parse height and width, or the side of a square, into width and height."""
    sides = _parse_ints(value)
    if len(sides) not in (1, 2) or min(sides) < 1:
        return None
    return sides[-1], sides[0]


def _mask_count(shape: tuple[int, ...]) -> int:
    """Return the number of masks in an output of this shape: the smallest dimension after the
    batch."""
    return min((extent for extent in shape[1:] if extent != DYNAMIC), default=_DEFAULT_MASK_COUNT)


def _parse_product(value: Any) -> int:
    return math.prod(_parse_ints(value)) if _parse_ints(value) else 0


def _parse_ints(value: Any) -> list[int]:
    """Return the integers in a value. Values from another process have floats in place of
    integers."""
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [int(each) for each in values if isinstance(each, int | float) and each == each // 1]


def _is_true(value: Any) -> bool:
    return value is True or value == 1 or str(value).lower() == "true"
