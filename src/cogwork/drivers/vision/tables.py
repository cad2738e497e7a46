"""The output of a model as a table: what its file says of it, and what a run puts into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from cogwork.drivers.mlmodel.facts import ANY, TensorFacts
from cogwork.drivers.vision.candidates import Floats
from cogwork.drivers.vision.reading import BadOutput, Tensors

ONE = (1, ANY)
"""The extent of a batch, of which there is one picture."""
_SLACK = 0.05
"""What rounding makes of 0 and 1, also in 8 bits."""


@dataclass(frozen=True, slots=True)
class Table:
    """A row for each thing and a column for each of its numbers, or turned over."""

    facts: TensorFacts
    extents: tuple[int, int]
    """ANY where the model leaves it open."""
    upright: bool | None = None
    """Whether the rows come first. None: they do where they are more than the columns."""

    @property
    def rank(self) -> int:
        return len(self.facts.shape) if self.facts.shape is not None else 3

    @property
    def rows(self) -> int:
        return self.extents[0 if self.upright else 1]

    @property
    def columns(self) -> int:
        return self.extents[1 if self.upright else 0]

    def both_ways(self) -> tuple[Table, Table]:
        return replace(self, upright=False), replace(self, upright=True)

    def read(self, tensors: Tensors, at_least: int) -> Floats:
        """[columns, rows], so many columns at least."""
        values = numbers(self.facts, tensors)
        if values.ndim == 4 and 1 in values.shape[1:3]:
            values = values.squeeze(axis=values.shape.index(1, 1))
        if values.ndim == 3 and values.shape[0] == 1:
            values = values[0]
        if values.ndim != 2:
            raise BadOutput(f"{_given(self.facts, tensors)} is no table of one picture")
        upright = values.shape[0] > values.shape[1] if self.upright is None else self.upright
        columns: Floats = values.T if upright else values
        if len(columns) < at_least:
            raise BadOutput(
                f"{_given(self.facts, tensors)} has {len(columns)} columns, and {at_least} are "
                "needed; check the family of the model"
            )
        return columns


def table(facts: TensorFacts) -> Table | None:
    """None for what has no two extents beside the batch, and for a single row of values."""
    match facts.shape:
        case None:
            return Table(facts, (ANY, ANY))
        case (batch, 1, rows, 7 as columns) | (batch, rows, 1, 4 as columns) if batch in ONE:
            return Table(facts, (rows, columns), upright=True)
        case (batch, first, second) if batch in ONE:
            return Table(facts, (first, second))
        case (first, second) if first != 1:
            return Table(facts, (first, second))
    return None


def numbers(facts: TensorFacts, tensors: Tensors) -> Floats:
    """As they are meant: whole numbers that stand for others are turned into those."""
    tensor = tensors.get(facts.name)
    if tensor is None:
        raise BadOutput(f'the model did not answer with its output "{facts.name}"')
    if tensor.dtype.kind not in "fiub":
        raise BadOutput(f"{_given(facts, tensors)} is not made of numbers")
    if facts.quantisation is None or tensor.dtype.kind == "f":
        return tensor.astype(np.float32, copy=False)
    values = tensor.astype(np.float32)
    values -= np.float32(facts.quantisation.zero_point)
    values *= np.float32(facts.quantisation.scale)
    return values


def check_shares(values: Floats, facts: TensorFacts, what: str) -> None:
    """Scores are from 0 to 1."""
    finite = values[np.isfinite(values)]
    low, high = finite.min(initial=0), finite.max(initial=1)
    if low < -_SLACK or high > 1 + _SLACK:
        raise BadOutput(
            f'{what} in the output "{facts.name}" are from {low:.3g} to {high:.3g}, and should be '
            "from 0 to 1: set another `family`, or export the model with its last activation"
        )


def _given(facts: TensorFacts, tensors: Tensors) -> str:
    tensor = tensors[facts.name]
    return f'the output "{facts.name}" ({tensor.dtype} {times(tensor.shape)})'


def times(extents: Iterable[int]) -> str:
    return "x".join("?" if extent == ANY else str(extent) for extent in extents) or "scalar"
