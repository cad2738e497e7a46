"""Model outputs as tables: their declared shape, and their values after a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from cogwork.drivers.mlmodel.model_info import DYNAMIC, TensorSpec
from cogwork.drivers.vision.candidates import Floats
from cogwork.drivers.vision.decoding.decoder import BadOutput, Tensors

BATCH_OF_ONE = (1, DYNAMIC)
"""Batch sizes that allow a single image."""
_TOLERANCE = 0.05
"""Rounding error by which scores may exceed the range from 0 to 1; large enough for 8-bit
values."""


@dataclass(frozen=True, slots=True)
class OutputTable:
    """A table with a row per detection and a column per value, or its transpose."""

    spec: TensorSpec
    extents: tuple[int, int]
    """Number of rows and columns; DYNAMIC if the model does not fix it."""
    rows_first: bool | None = None
    """Whether rows are the first axis. If None, the longer axis holds the rows."""

    @property
    def rank(self) -> int:
        return len(self.spec.shape) if self.spec.shape is not None else 3

    @property
    def rows(self) -> int:
        return self.extents[0 if self.rows_first else 1]

    @property
    def columns(self) -> int:
        return self.extents[1 if self.rows_first else 0]

    def both_orientations(self) -> tuple[OutputTable, OutputTable]:
        return replace(self, rows_first=False), replace(self, rows_first=True)

    def read(self, tensors: Tensors, min_columns: int) -> Floats:
        """Return the values as [columns, rows], with at least the given number of columns."""
        values = dequantize_output(self.spec, tensors)
        if values.ndim == 4 and 1 in values.shape[1:3]:
            values = values.squeeze(axis=values.shape.index(1, 1))
        if values.ndim == 3 and values.shape[0] == 1:
            values = values[0]
        if values.ndim != 2:
            raise BadOutput(
                f"{_describe_output(self.spec, tensors)} cannot be decoded: expected the rows and "
                "columns of one image"
            )
        rows_first = (
            values.shape[0] > values.shape[1] if self.rows_first is None else self.rows_first
        )
        columns: Floats = values.T if rows_first else values
        if len(columns) < min_columns:
            raise BadOutput(
                f"{_describe_output(self.spec, tensors)} has {len(columns)} columns, but "
                f"{min_columns} are needed; check the `family` of the model"
            )
        return columns


def as_table(spec: TensorSpec) -> OutputTable | None:
    """Return the output as a table, or None if it does not have two axes after the batch axis."""
    match spec.shape:
        case None:
            return OutputTable(spec, (DYNAMIC, DYNAMIC))
        case (batch, 1, rows, 7 as columns) | (batch, rows, 1, 4 as columns) if (
            batch in BATCH_OF_ONE
        ):
            return OutputTable(spec, (rows, columns), rows_first=True)
        case (batch, first, second) if batch in BATCH_OF_ONE:
            return OutputTable(spec, (first, second))
        case (first, second) if first != 1:
            return OutputTable(spec, (first, second))
    return None


def dequantize_output(spec: TensorSpec, tensors: Tensors) -> Floats:
    """Return the output as floats, dequantized if needed."""
    tensor = tensors.get(spec.name)
    if tensor is None:
        raise BadOutput(f'the model did not return its output "{spec.name}"')
    if tensor.dtype.kind not in "fiub":
        raise BadOutput(f"{_describe_output(spec, tensors)} is not numeric")
    if spec.quantization is None or tensor.dtype.kind == "f":
        return tensor.astype(np.float32, copy=False)
    values = tensor.astype(np.float32)
    values -= np.float32(spec.quantization.zero_point)
    values *= np.float32(spec.quantization.scale)
    return values


def check_probabilities(values: Floats, spec: TensorSpec, what: str) -> None:
    """Check that scores are from 0 to 1."""
    finite = values[np.isfinite(values)]
    low, high = finite.min(initial=0), finite.max(initial=1)
    if low < -_TOLERANCE or high > 1 + _TOLERANCE:
        raise BadOutput(
            f'{what} in the output "{spec.name}" range from {low:.3g} to {high:.3g}, but should be '
            "from 0 to 1: set another `family`, or export the model with its final activation"
        )


def _describe_output(spec: TensorSpec, tensors: Tensors) -> str:
    tensor = tensors[spec.name]
    return f'the output "{spec.name}" ({tensor.dtype} {format_shape(tensor.shape)})'


def format_shape(extents: Iterable[int]) -> str:
    return "x".join("?" if extent == DYNAMIC else str(extent) for extent in extents) or "scalar"
