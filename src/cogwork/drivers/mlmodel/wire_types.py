"""Conversion of tensor types that the API does not support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.resource.messages.tensors import Tensors

Dtypes = Mapping[str, np.dtype[Any]]
"""Types by tensor name."""

_WIRE_DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float32),
    "bool": np.dtype(np.uint8),
}
"""The nearest type that holds every value."""


def to_wire_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return _WIRE_DTYPES.get(dtype.name, dtype)


def input_casts(stored: Dtypes) -> Dtypes:
    """Return the types to which the input tensors of a call must be cast."""
    return {name: dtype for name, dtype in stored.items() if dtype.name in _WIRE_DTYPES}


def output_casts(stored: Dtypes) -> Dtypes:
    """Return the types to which the outputs of the model must be cast."""
    return {name: to_wire_dtype(dtype) for name, dtype in input_casts(stored).items()}


def cast_tensors(tensors: Tensors, to: Dtypes) -> dict[str, NDArray[Any]]:
    """Cast the tensors named in `to`, and keep the others; overflow becomes infinity."""
    with np.errstate(over="ignore"):
        return {
            name: tensor.astype(to[name]) if name in to else tensor
            for name, tensor in tensors.items()
        }


def unsupported_type_error(path: str, tensor: str, kind: str) -> BadModel:
    return BadModel(
        f'{path} cannot be served: its tensor "{tensor}" has the type {kind}, '
        "which the API does not support; export the model without it"
    )
