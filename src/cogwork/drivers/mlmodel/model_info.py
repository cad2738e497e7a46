"""Description of a model: its tensors, labels and metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.config.text.json_errors import clip
from cogwork.core.errors import InvalidRequest
from cogwork.resource.labels import Labels
from cogwork.resource.messages.tensors import Tensors

_MAX_LISTED = 8
DYNAMIC = -1
"""A dimension of dynamic size."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantization: real value = scale * (stored value - zero point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class TensorSpec:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    """Sizes of the dimensions, DYNAMIC if not fixed.

    None if the file does not declare the input. In this case, the type is a guess, and every tensor
    fits.
    """
    description: str = ""
    quantization: Quantization | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return f'"{self.name}" (any shape)'
        extents = "x".join("?" if extent == DYNAMIC else str(extent) for extent in self.shape)
        return f'"{self.name}" ({self.dtype} {extents or "scalar"})'

    def fits(self, tensor: NDArray[Any]) -> bool:
        if self.shape is None:
            return True
        return (
            tensor.dtype == self.dtype
            and tensor.ndim == len(self.shape)
            and all(
                w in (DYNAMIC, given) for w, given in zip(self.shape, tensor.shape, strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class ModelInfo:
    kind: str
    """File format: `ONNX`, `TensorFlow Lite` and so on."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    name: str = ""
    description: str = ""
    labels: Labels | None = None
    """Labels inside the file."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Further metadata of the file, such as `stride` and `task`, as JSON-compatible values."""


def validate_inputs(inputs: Sequence[TensorSpec], tensors: Tensors) -> dict[str, NDArray[Any]]:
    """Return the tensors if they match the inputs, or raise an error that lists the inputs."""
    specs = {each.name: each for each in inputs}
    unknown = [f'"{clip(name)}"' for name in tensors if name not in specs][:_MAX_LISTED]
    missing = [str(each) for name, each in specs.items() if name not in tensors]
    if unknown or missing:
        given = f"{', '.join(unknown)} is not an input of the model" if unknown else ""
        lacks = f"the input {', '.join(missing)} is missing" if missing else ""
        takes = "" if missing else f"it takes {', '.join(str(each) for each in inputs)}"
        raise InvalidRequest("; ".join(part for part in (given, lacks, takes) if part))
    for name, tensor in tensors.items():
        spec = specs[name]
        if not spec.fits(tensor):
            extents = "x".join(map(str, tensor.shape)) or "scalar"
            raise InvalidRequest(
                f'the input "{name}" is {tensor.dtype} {extents}; the model takes {spec}'
            )
    return dict(tensors)
