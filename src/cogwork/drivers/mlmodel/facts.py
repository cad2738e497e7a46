"""What is known of a model: its tensors, its labels, and what its file says beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.config.json_faults import clip
from cogwork.core.errors import InvalidRequest
from cogwork.resource.labels import Labels
from cogwork.resource.tensors import Tensors

_MOST_NAMED = 8
ANY = -1
"""An extent that the model leaves open."""


@dataclass(frozen=True, slots=True)
class Quantisation:
    """real value = scale x (stored value - zero point)"""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class TensorFacts:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    """ANY where the model leaves it open. None where its file does not say what it takes: then the
    type is a guess, too, and every tensor fits."""
    description: str = ""
    quantisation: Quantisation | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return f'"{self.name}" (any shape)'
        extents = "x".join("?" if extent == ANY else str(extent) for extent in self.shape)
        return f'"{self.name}" ({self.dtype} {extents or "scalar"})'

    def fits(self, tensor: NDArray[Any]) -> bool:
        if self.shape is None:
            return True
        return (
            tensor.dtype == self.dtype
            and tensor.ndim == len(self.shape)
            and all(w in (ANY, given) for w, given in zip(self.shape, tensor.shape, strict=True))
        )


@dataclass(frozen=True, slots=True)
class ModelFacts:
    kind: str
    """What the file is: `ONNX`, `TensorFlow Lite` and so on."""
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    name: str = ""
    description: str = ""
    labels: Labels | None = None
    """Those inside the file."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What else the file says, such as the `stride` and `task` of its training; plain values."""


def fitting(inputs: Sequence[TensorFacts], tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The tensors as the model takes them, or a sentence that says what it takes."""
    wanted = {each.name: each for each in inputs}
    unknown = [f'"{clip(name)}"' for name in tensors if name not in wanted][:_MOST_NAMED]
    missing = [str(each) for name, each in wanted.items() if name not in tensors]
    if unknown or missing:
        given = f"{', '.join(unknown)} is not an input of the model" if unknown else ""
        lacks = f"the input {', '.join(missing)} is missing" if missing else ""
        takes = "" if missing else f"it takes {', '.join(str(each) for each in inputs)}"
        raise InvalidRequest("; ".join(part for part in (given, lacks, takes) if part))
    for name, tensor in tensors.items():
        facts = wanted[name]
        if not facts.fits(tensor):
            extents = "x".join(map(str, tensor.shape)) or "scalar"
            raise InvalidRequest(
                f'the input "{name}" is {tensor.dtype} {extents}; the model takes {facts}'
            )
    return dict(tensors)
