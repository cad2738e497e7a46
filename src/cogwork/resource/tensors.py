"""Tensors on the wire: NumPy arrays as the `FlatTensors` of a model's calls, and back.

The SDK's own conversion makes a Python number of every value, which takes longer than most models
do. Values are little-endian on the wire as in memory, so here they are joined into a message with
one copy, and read as views into it: without a copy wherever they lie aligned, since engines would
make that copy themselves, or refuse. What is read cannot be written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.config.json_faults import clip
from cogwork.core.errors import InvalidRequest
from cogwork.resource.wire_fields import I32, I64, LEN, Bytes, Field, FieldReader
from cogwork.wire.delimited import delimited

Tensors = Mapping[str, NDArray[Any]]
_Part = bytes | memoryview


@dataclass(frozen=True, slots=True)
class InferRequest:
    name: str
    tensors: dict[str, NDArray[Any]]
    extra: bytes
    """A serialized `google.protobuf.Struct`, unread; empty when there is none."""


_NAME, _TENSORS, _EXTRA = 1, 3, 99
"""Fields of `InferRequest`; in `InferResponse`, tensors have the same number."""
_ENTRY = 1
_KEY, _VALUE = 1, 2
_SHAPE = 1
_DATA = 1

_MOST_DIMENSIONS = 32
"""As many as every NumPy has."""
_LARGEST = 1 << 32
"""Values of a tensor: more than any message has room for."""
_EXTENT = np.dtype("<u8")


class _Layout(NamedTuple):
    field: int
    dtype: np.dtype[Any]
    stored: np.dtype[Any]
    """What the values are on the wire. It has no 16 bits: such a value takes 32, sign and all."""

    @property
    def unpacked(self) -> int | None:
        """The kind of field that holds a single value; none where all are one string of bytes."""
        return {4: I32, 8: I64}.get(self.stored.itemsize)


def _layout(field: int, dtype: str, stored: str = "") -> _Layout:
    return _Layout(field, np.dtype(dtype), np.dtype(stored or dtype))


_LAYOUTS = (
    _layout(2, "i1"),
    _layout(3, "u1"),
    _layout(4, "<i2", stored="<i4"),
    _layout(5, "<u2", stored="<u4"),
    _layout(6, "<i4"),
    _layout(7, "<u4"),
    _layout(8, "<i8"),
    _layout(9, "<u8"),
    _layout(10, "<f4"),
    _layout(11, "<f8"),
)
_BY_FIELD = {each.field: each for each in _LAYOUTS}
_BY_DTYPE = {each.dtype.str[1:]: each for each in _LAYOUTS}
"""By kind and size, whatever the order of the bytes."""


def read_infer_request(data: Bytes) -> InferRequest:
    reader = FieldReader(data)
    found = reader.by_number([reader.whole()])
    return InferRequest(
        name=_last_text(reader, found[_NAME]),
        tensors=_read_tensors(reader, found[_TENSORS]),
        extra=b"".join(map(reader.octets, found[_EXTRA])),
    )


def write_infer_request(name: str, tensors: Tensors, extra: bytes = b"") -> bytes:
    named = _nested(_NAME, [name.encode()]) if name else []
    extras = _nested(_EXTRA, [extra]) if extra else []
    return b"".join([*named, *_nested(_TENSORS, _entries(tensors)), *extras])


def read_infer_reply(data: Bytes) -> dict[str, NDArray[Any]]:
    reader = FieldReader(data)
    return _read_tensors(reader, reader.by_number([reader.whole()])[_TENSORS])


def write_infer_reply(tensors: Tensors) -> bytes:
    return b"".join(_nested(_TENSORS, _entries(tensors)))


def decode_tensors(data: Bytes) -> dict[str, NDArray[Any]]:
    reader = FieldReader(data)
    return _read_tensors(reader, [reader.whole()])


def encode_tensors(tensors: Tensors) -> bytes:
    return b"".join(_entries(tensors))


def _entries(tensors: Tensors) -> list[_Part]:
    return [part for name, array in tensors.items() for part in _entry(name, array)]


def _entry(name: str, array: NDArray[Any]) -> list[_Part]:
    layout = _layout_of(name, array.dtype)
    shape = np.array(array.shape, _EXTENT).view(np.uint8).data
    values = np.ascontiguousarray(array, layout.stored).reshape(-1).view(np.uint8).data
    tensor = [
        *(_nested(_SHAPE, [shape]) if len(shape) else []),
        *_nested(layout.field, _nested(_DATA, [values]) if len(values) else []),
    ]
    return _nested(_ENTRY, [*_nested(_KEY, [name.encode()]), *_nested(_VALUE, tensor)])


def _layout_of(name: str, dtype: np.dtype[Any]) -> _Layout:
    layout = _BY_DTYPE.get(dtype.str[1:])
    if layout is None:
        known = ", ".join(each.dtype.name for each in _LAYOUTS)
        raise InvalidRequest(
            f'tensor "{clip(name)}" is of type {dtype}, which cannot be sent: '
            f"convert it to one of {known}"
        )
    return layout


def _nested(number: int, parts: list[_Part]) -> list[_Part]:
    return [delimited(number, sum(map(len, parts))), *parts]


def _read_tensors(reader: FieldReader, messages: Iterable[Field]) -> dict[str, NDArray[Any]]:
    values = dict[str, list[Field]]()
    for entry in reader.by_number(messages)[_ENTRY]:
        found = reader.by_number([entry])
        values[_last_text(reader, found[_KEY])] = found[_VALUE]
    read = {name: _tensor(reader, name, value) for name, value in values.items()}
    return {name: tensor for name, tensor in read.items() if tensor is not None}


def _tensor(reader: FieldReader, name: str, messages: list[Field]) -> NDArray[Any] | None:
    """None if its values are of no type: the SDK leaves such a tensor out, too."""
    shape, layout, values = list[NDArray[Any]](), None, list[Field]()
    for field in reader.fields(messages):
        if field.number == _SHAPE and field.kind in (LEN, I64):
            shape.append(reader.numbers(field, _EXTENT))
        elif field.kind == LEN and field.number in _BY_FIELD:
            if layout is not _BY_FIELD[field.number]:
                layout, values = _BY_FIELD[field.number], []
            values.append(field)
    return None if layout is None else _shaped(name, _values(reader, layout, values), shape)


def _values(reader: FieldReader, layout: _Layout, messages: list[Field]) -> NDArray[Any]:
    parts = [
        reader.numbers(field, layout.stored)
        for field in reader.fields(messages)
        if field.number == _DATA and field.kind in (LEN, layout.unpacked)
    ]
    # Bytes are one value, of which the last counts; numbers are many.
    stored = _joined(parts if layout.unpacked else parts[-1:], layout.stored)
    if layout.stored != layout.dtype:
        return stored.astype(layout.dtype)
    return np.require(stored, requirements=("C", "ALIGNED"))


def _joined(parts: list[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _shaped(name: str, values: NDArray[Any], parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Without a shape, a single value is a scalar, as in the SDK, and several are a list."""
    extents = _joined(parts, _EXTENT)
    if len(extents) > _MOST_DIMENSIONS:
        raise InvalidRequest(
            f'tensor "{clip(name)}" has {len(extents)} dimensions: at most {_MOST_DIMENSIONS} '
            "can be read"
        )
    shape = tuple(map(int, extents)) if len(extents) or len(values) == 1 else (len(values),)
    size = prod(shape)
    if size != len(values):
        raise InvalidRequest(
            f'tensor "{clip(name)}" has {len(values)} values, and its shape {_written(shape)} '
            f"has room for {clip(str(size))}"
        )
    # Nothing to hold, and somebody downstream who sums it along its first dimension.
    if prod(extent or 1 for extent in shape) > _LARGEST:
        raise InvalidRequest(
            f'tensor "{clip(name)}" is empty, and its shape {_written(shape)}, huge'
        )
    shaped = values.reshape(shape)
    shaped.flags.writeable = False
    return shaped


def _written(shape: tuple[int, ...]) -> str:
    return clip(f"[{', '.join(map(str, shape))}]")


def _last_text(reader: FieldReader, fields: list[Field]) -> str:
    return reader.text(fields[-1]) if fields else ""
