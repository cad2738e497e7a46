"""Convert between NumPy arrays and the `FlatTensors` messages of ML model calls.

The SDK's own conversion turns every value into a Python number, which takes longer than most
models. Values are little-endian on the wire and in memory. So they are written with one copy, and
read as read-only views into the message. Only unaligned values are copied, because engines would
copy or reject them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.config.text.json_errors import clip
from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.protobuf_reader import I32, I64, LEN, Bytes, Field, FieldReader
from cogwork.wire.messages.protobuf_encoding import encode_field_header

Tensors = Mapping[str, NDArray[Any]]
_Chunk = bytes | memoryview


@dataclass(frozen=True, slots=True)
class InferRequest:
    name: str
    tensors: dict[str, NDArray[Any]]
    extra: bytes
    """A serialized `google.protobuf.Struct`; empty if the message has no `extra`."""


_NAME, _TENSORS, _EXTRA = 1, 3, 99
"""Field numbers of `InferRequest`. In `InferResponse`, tensors have the same field number."""
_ENTRY = 1
_KEY, _VALUE = 1, 2
_SHAPE = 1
_DATA = 1

_MAX_DIMENSIONS = 32
"""Maximum number of dimensions in all supported versions of NumPy."""
_MAX_VALUES = 1 << 32
"""Maximum number of values of a tensor; more than fit into any message."""
_EXTENT_DTYPE = np.dtype("<u8")


class _TensorLayout(NamedTuple):
    field: int
    dtype: np.dtype[Any]
    wire_dtype: np.dtype[Any]
    """The type on the wire. The wire has no 16-bit types, so such values are extended to 32
    bits."""

    @property
    def unpacked_kind(self) -> int | None:
        """The wire type of a single unpacked value; None for types that are sent as bytes."""
        return {4: I32, 8: I64}.get(self.wire_dtype.itemsize)


def _make_layout(field: int, dtype: str, stored: str = "") -> _TensorLayout:
    return _TensorLayout(field, np.dtype(dtype), np.dtype(stored or dtype))


_LAYOUTS = (
    _make_layout(2, "i1"),
    _make_layout(3, "u1"),
    _make_layout(4, "<i2", stored="<i4"),
    _make_layout(5, "<u2", stored="<u4"),
    _make_layout(6, "<i4"),
    _make_layout(7, "<u4"),
    _make_layout(8, "<i8"),
    _make_layout(9, "<u8"),
    _make_layout(10, "<f4"),
    _make_layout(11, "<f8"),
)
_BY_FIELD = {each.field: each for each in _LAYOUTS}
_BY_DTYPE = {each.dtype.str[1:]: each for each in _LAYOUTS}
"""The NumPy types by kind and size, for any byte order."""


def read_infer_request(data: Bytes) -> InferRequest:
    reader = FieldReader(data)
    found = reader.group_by_number([reader.root()])
    return InferRequest(
        name=_read_last_text(reader, found[_NAME]),
        tensors=_read_tensors(reader, found[_TENSORS]),
        extra=b"".join(map(reader.read_bytes, found[_EXTRA])),
    )


def write_infer_request(name: str, tensors: Tensors, extra: bytes = b"") -> bytes:
    named = _encode_nested(_NAME, [name.encode()]) if name else []
    extras = _encode_nested(_EXTRA, [extra]) if extra else []
    return b"".join([*named, *_encode_nested(_TENSORS, _encode_entries(tensors)), *extras])


def read_infer_reply(data: Bytes) -> dict[str, NDArray[Any]]:
    reader = FieldReader(data)
    return _read_tensors(reader, reader.group_by_number([reader.root()])[_TENSORS])


def write_infer_reply(tensors: Tensors) -> bytes:
    return b"".join(_encode_nested(_TENSORS, _encode_entries(tensors)))


def decode_tensors(data: Bytes) -> dict[str, NDArray[Any]]:
    reader = FieldReader(data)
    return _read_tensors(reader, [reader.root()])


def encode_tensors(tensors: Tensors) -> bytes:
    return b"".join(_encode_entries(tensors))


def _encode_entries(tensors: Tensors) -> list[_Chunk]:
    return [part for name, array in tensors.items() for part in _encode_entry(name, array)]


def _encode_entry(name: str, array: NDArray[Any]) -> list[_Chunk]:
    layout = _find_layout(name, array.dtype)
    shape = np.array(array.shape, _EXTENT_DTYPE).view(np.uint8).data
    values = np.ascontiguousarray(array, layout.wire_dtype).reshape(-1).view(np.uint8).data
    tensor = [
        *(_encode_nested(_SHAPE, [shape]) if len(shape) else []),
        *_encode_nested(layout.field, _encode_nested(_DATA, [values]) if len(values) else []),
    ]
    return _encode_nested(
        _ENTRY, [*_encode_nested(_KEY, [name.encode()]), *_encode_nested(_VALUE, tensor)]
    )


def _find_layout(name: str, dtype: np.dtype[Any]) -> _TensorLayout:
    layout = _BY_DTYPE.get(dtype.str[1:])
    if layout is None:
        known = ", ".join(each.dtype.name for each in _LAYOUTS)
        raise InvalidRequest(
            f'tensor "{clip(name)}" has type {dtype}, which cannot be sent; '
            f"convert it to one of {known}"
        )
    return layout


def _encode_nested(number: int, parts: list[_Chunk]) -> list[_Chunk]:
    return [encode_field_header(number, sum(map(len, parts))), *parts]


def _read_tensors(reader: FieldReader, messages: Iterable[Field]) -> dict[str, NDArray[Any]]:
    values = dict[str, list[Field]]()
    for entry in reader.group_by_number(messages)[_ENTRY]:
        found = reader.group_by_number([entry])
        values[_read_last_text(reader, found[_KEY])] = found[_VALUE]
    read = {name: _read_tensor(reader, name, value) for name, value in values.items()}
    return {name: tensor for name, tensor in read.items() if tensor is not None}


def _read_tensor(reader: FieldReader, name: str, messages: list[Field]) -> NDArray[Any] | None:
    """Read a tensor. Return None if no field contains values; the SDK omits such a tensor, too."""
    shape, layout, values = list[NDArray[Any]](), None, list[Field]()
    for field in reader.iter_fields(messages):
        if field.number == _SHAPE and field.kind in (LEN, I64):
            shape.append(reader.read_numbers(field, _EXTENT_DTYPE))
        elif field.kind == LEN and field.number in _BY_FIELD:
            if layout is not _BY_FIELD[field.number]:
                layout, values = _BY_FIELD[field.number], []
            values.append(field)
    return None if layout is None else _reshape(name, _read_values(reader, layout, values), shape)


def _read_values(reader: FieldReader, layout: _TensorLayout, messages: list[Field]) -> NDArray[Any]:
    parts = [
        reader.read_numbers(field, layout.wire_dtype)
        for field in reader.iter_fields(messages)
        if field.number == _DATA and field.kind in (LEN, layout.unpacked_kind)
    ]
    # If a field occurs several times, protobuf concatenates its numbers, but keeps only its last
    # bytes value.
    stored = _concatenate(parts if layout.unpacked_kind else parts[-1:], layout.wire_dtype)
    if layout.wire_dtype != layout.dtype:
        return stored.astype(layout.dtype)
    return np.require(stored, requirements=("C", "ALIGNED"))


def _concatenate(parts: list[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _reshape(name: str, values: NDArray[Any], parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Reshape the values. Without a shape, as in the SDK, a single value becomes a scalar, and
    several become a vector."""
    extents = _concatenate(parts, _EXTENT_DTYPE)
    if len(extents) > _MAX_DIMENSIONS:
        raise InvalidRequest(
            f'tensor "{clip(name)}" has {len(extents)} dimensions; the limit is {_MAX_DIMENSIONS}'
        )
    shape = tuple(map(int, extents)) if len(extents) or len(values) == 1 else (len(values),)
    size = prod(shape)
    if size != len(values):
        raise InvalidRequest(
            f'tensor "{clip(name)}" has {len(values)} values, but its shape '
            f"{_format_shape(shape)} needs {clip(str(size))}"
        )
    # Reject a large shape even if it is empty: reducing such a tensor along one dimension could
    # allocate a huge result.
    if prod(extent or 1 for extent in shape) > _MAX_VALUES:
        raise InvalidRequest(
            f'tensor "{clip(name)}" is empty, but its shape {_format_shape(shape)} is too large'
        )
    shaped = values.reshape(shape)
    shaped.flags.writeable = False
    return shaped


def _format_shape(shape: tuple[int, ...]) -> str:
    return clip(f"[{', '.join(map(str, shape))}]")


def _read_last_text(reader: FieldReader, fields: list[Field]) -> str:
    return reader.read_text(fields[-1]) if fields else ""
