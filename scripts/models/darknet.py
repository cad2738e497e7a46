"""The weights of a Darknet model: convolutions in the order of its layers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_VARIANCE_FLOOR = 1e-6

Floats = NDArray[np.float32]


class Shape(NamedTuple):
    filters: int
    channels: int
    size: int
    is_normalized: bool = True
    """Whether batch normalization follows."""


class Convolution(NamedTuple):
    kernel: Floats
    bias: Floats


def read_weights(data: bytes, shapes: Sequence[Shape]) -> Iterator[Convolution]:
    """Yield the convolutions, with their batch normalization folded into them."""
    values = _Values(np.frombuffer(data, "<f4", offset=_header_size(data)))
    for shape in shapes:
        yield _read_convolution(values, shape)
    if left := values.left:
        raise ValueError(f"{left} weights remain; the shapes belong to another model")


def _header_size(data: bytes) -> int:
    """Return the header size: the version and the image count, which grew from 4 bytes to 8."""
    major, minor, _ = struct.unpack_from("<3i", data)
    return 20 if major * 10 + minor >= 2 else 16


class _Values:
    def __init__(self, values: Floats) -> None:
        self._values, self._at = values, 0

    @property
    def left(self) -> int:
        return len(self._values) - self._at

    def take(self, *shape: int) -> Floats:
        count = int(np.prod(shape))
        taken = self._values[self._at : self._at + count]
        self._at += count
        return taken.reshape(shape)


def _read_convolution(values: _Values, shape: Shape) -> Convolution:
    bias = values.take(shape.filters)
    if not shape.is_normalized:
        return Convolution(_read_kernel(values, shape), bias)
    scale, mean, variance = values.take(3, shape.filters)
    factor = scale / np.sqrt(variance + np.float32(_VARIANCE_FLOOR))
    kernel = _read_kernel(values, shape) * factor[:, None, None, None]
    return Convolution(kernel, bias - mean * factor)


def _read_kernel(values: _Values, shape: Shape) -> Floats:
    return values.take(shape.filters, shape.channels, shape.size, shape.size)
