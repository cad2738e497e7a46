"""The types of a model's tensors that the API cannot carry, and what goes in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.resource.tensors import Tensors

Dtypes = Mapping[str, np.dtype[Any]]
"""By the name of the tensor."""

_INSTEAD: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float32),
    "bool": np.dtype(np.uint8),
}
"""The nearest that holds every value of them."""


def on_the_wire(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return _INSTEAD.get(dtype.name, dtype)


def before_a_run(stored: Dtypes) -> Dtypes:
    """What the tensors of a call have to be cast to."""
    return {name: dtype for name, dtype in stored.items() if dtype.name in _INSTEAD}


def after_a_run(stored: Dtypes) -> Dtypes:
    """What the tensors of the model have to be cast to."""
    return {name: on_the_wire(dtype) for name, dtype in before_a_run(stored).items()}


def cast(tensors: Tensors, to: Dtypes) -> dict[str, NDArray[Any]]:
    """Those that `to` does not name are left as they are; what is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return {
            name: tensor.astype(to[name]) if name in to else tensor
            for name, tensor in tensors.items()
        }


def not_carried(path: str, tensor: str, kind: str) -> BadModel:
    return BadModel(
        f'{path} cannot be served: its tensor "{tensor}" is a {kind}, '
        "which the API cannot carry; export the model without it"
    )
