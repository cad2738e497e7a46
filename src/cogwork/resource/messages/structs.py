"""Convert between protobuf Structs and Python values.

Converting to a Struct is ten times as fast as with the SDK. Unlike in the SDK, null becomes None,
and a value without a kind also becomes None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, SupportsFloat

from google.protobuf.struct_pb2 import Struct, Value

from cogwork.core.errors import InvalidRequest

THREAD_THRESHOLD = 16 * 1024
"""Bytes from which a message is converted in a thread instead of on the event loop."""
_MAX_DEPTH = 95
"""Maximum nesting of a Struct. Receivers reject messages with more than 100 levels, including the
levels around the Struct."""
MAX_EXTRA_VALUES = 2_000
"""Maximum number of values in the `extra` of a call, which is converted on the event loop."""


def to_dict(struct: Struct) -> dict[str, Any]:
    return {key: _to_python(value) for key, value in struct.fields.items()}


def to_struct(mapping: Mapping[str, Any] | None) -> Struct:
    struct = Struct()
    for key, value in (mapping or {}).items():
        _fill(struct.fields[key], value, _MAX_DEPTH - 2)
    return struct


def extra_to_dict(struct: Struct) -> dict[str, Any]:
    """Convert the `extra` of a call. The size of `extra` is limited, because the SDK's services
    convert it on the event loop."""
    # Count the values only in a large message: a value takes at least two bytes, so a small message
    # cannot exceed the limit.
    if struct.ByteSize() > 2 * MAX_EXTRA_VALUES and _count_values(struct) > MAX_EXTRA_VALUES:
        raise InvalidRequest(
            f"extra has more than {MAX_EXTRA_VALUES} values; use DoCommand instead"
        )
    return to_dict(struct)


async def to_dict_async(struct: Struct) -> dict[str, Any]:
    return (
        to_dict(struct)
        if struct.ByteSize() < THREAD_THRESHOLD
        else await asyncio.to_thread(to_dict, struct)
    )


async def to_struct_async(mapping: Mapping[str, Any] | None) -> Struct:
    if mapping is None or _is_flat(mapping):
        return to_struct(mapping)
    return await asyncio.to_thread(to_struct, mapping)


def _to_python(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    match kind:
        case "number_value":
            return value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_to_python(member) for member in value.list_value.values]
        case "struct_value":
            return to_dict(value.struct_value)
        case _:
            return None


def _fill(value: Value, python: Any, left: int) -> None:
    """Set a value. `left` is the number of levels that may be nested in it."""
    if left < 0:
        raise TypeError("the value is nested too deeply for a message; make it flatter")
    if isinstance(python, bool):
        value.bool_value = python
    elif isinstance(python, str):
        value.string_value = python
    elif python is None:
        value.null_value = 0  # type: ignore[assignment]
    elif isinstance(python, SupportsFloat):
        value.number_value = float(python)
    elif isinstance(python, Mapping):
        value.struct_value.SetInParent()
        fields = value.struct_value.fields
        for key, member in python.items():
            _fill(fields[key], member, left - 3)
    elif isinstance(python, list | tuple):
        value.list_value.SetInParent()
        add = value.list_value.values.add
        for member in python:
            _fill(add(), member, left - 2)
    else:
        kind = type(python).__name__
        raise TypeError(f"a value of type {kind} cannot be sent; use JSON types only")


def _count_values(struct: Struct) -> int:
    waiting = list(struct.fields.values())
    count = 0
    while waiting and count <= MAX_EXTRA_VALUES:
        value = waiting.pop()
        count += 1
        waiting += value.list_value.values
        waiting += value.struct_value.fields.values()
    return count


def _is_flat(mapping: Mapping[str, Any]) -> bool:
    return all(not isinstance(member, Mapping | list | tuple) for member in mapping.values())
