"""Read the arrays of a PyTorch checkpoint in the format before 1.6, without PyTorch.

Five pickles (magic number, protocol, platform, state dictionary, keys of its storages), then each
storage: its length in elements and its bytes. Unpickling creates only dictionaries and arrays.
"""

from __future__ import annotations

import collections
import io
import pickle
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


def read_checkpoint(data: bytes) -> dict[str, NDArray[Any]]:
    file = io.BytesIO(data)
    magic, _, _, tensors, keys = (_Unpickler(file).load() for _ in range(5))
    if magic != _MAGIC:
        raise ValueError("this is not a checkpoint in the format before PyTorch 1.6")
    item_sizes = {tensor.key: tensor.dtype.itemsize for tensor in tensors.values()}
    storages = {key: _read_storage(file, item_sizes[key]) for key in keys}
    return {name: tensor.array(storages[tensor.key]) for name, tensor in tensors.items()}


def _read_storage(file: io.BytesIO, item_size: int) -> bytes:
    (count,) = struct.unpack("<q", file.read(8))
    return file.read(count * item_size)


class _Storage(NamedTuple):
    key: str
    dtype: np.dtype[Any]


class _Tensor(NamedTuple):
    key: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in elements, like the offset."""

    def array(self, storage: bytes) -> NDArray[Any]:
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.strides]
        return np.ndarray(self.shape, self.dtype, storage, self.offset * size, strides)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise pickle.UnpicklingError(f"unexpected class {module}.{name} in a checkpoint")

    def persistent_load(self, identity: Any) -> _Storage:
        _, dtype, key, *_ = identity
        return _Storage(key, dtype)


def _rebuild_tensor(
    storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> _Tensor:
    return _Tensor(*storage, offset, shape, strides)
