"""For each method, requests of the largest accepted size and of the next larger size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from cogwork.wire.messages.protobuf_encoding import encode_field_header
from cogwork.wire.table.request_limits import DEFAULT_MAX_SIZE, RequestLimit, message_limit

DEEPEST = 3


@dataclass(frozen=True)
class LargeRequest:
    """One way to make a request large."""

    label: str
    largest: bytes
    over: bytes


def large_requests(request: Descriptor, named: dict[str, str]) -> Iterator[LargeRequest]:
    """`named`: the values of the fields that name a resource."""
    limit = message_limit(request)
    for label, prefix, field in _fields(request, (), DEEPEST):
        beside = _names(request, named, label)
        if field.is_repeated:
            yield from _fill_lists(label, prefix, field, limit, beside)
        elif field.message_type is not None and field.message_type.name == "Struct":
            yield from _fill_structs(label, prefix, field, limit, beside)
        elif field.type == field.TYPE_STRING:
            yield _fill_text(f"{label}: long", prefix, field, limit, beside)


def _fields(
    message: Descriptor, prefix: tuple[int, ...], depth: int
) -> Iterator[tuple[str, tuple[int, ...], FieldDescriptor]]:
    for field in message.fields:
        yield field.name, prefix, field
        inner = field.message_type
        if inner is None or depth == 0 or inner.name == "Struct" or _is_map(field):
            continue
        for label, deeper, found in _fields(inner, (*prefix, field.number), depth - 1):
            yield f"{field.name}.{label}", deeper, found


def _fill_text(
    label: str, prefix: tuple[int, ...], field: FieldDescriptor, limit: RequestLimit, beside: bytes
) -> LargeRequest:
    """Fill a text as far as the limit allows; a large payload field does not raise it."""
    most = DEFAULT_MAX_SIZE if limit.has_payload else limit.size
    return LargeRequest(
        label,
        beside + _wrap(prefix, _field(field.number, b"x" * (most - len(beside) - 40))),
        beside + _wrap(prefix, _field(field.number, b"x" * (most + 1))),
    )


def _fill_lists(
    label: str, prefix: tuple[int, ...], field: FieldDescriptor, limit: RequestLimit, beside: bytes
) -> Iterator[LargeRequest]:
    count, over = limit.elements - len(prefix), limit.elements + 1
    if _is_map(field):
        entries = [_field(field.number, _field(1, b"%x" % i)) for i in range(over)]
        key: Any = field.message_type.fields_by_name["key"]
        if key.type != key.TYPE_STRING:
            return
        few, many = b"".join(entries[:count]), b"".join(entries)
    elif field.message_type is not None or field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        few, many = (_field(field.number, b"") * size for size in (count, over))
    else:
        width = {field.TYPE_DOUBLE: 8, field.TYPE_FLOAT: 4}.get(field.type, 1)
        most = DEFAULT_MAX_SIZE if limit.has_payload else limit.size
        fitting = min(8 * count, (most - len(beside) - 40) // width)
        few, many = (
            _field(field.number, b"\0" * width * size) for size in (fitting, 8 * (over + 8))
        )
    if len(few) + len(beside) <= limit.size:
        yield LargeRequest(
            f"{label}: list", beside + _wrap(prefix, few), beside + _wrap(prefix, many)
        )


def _fill_structs(
    label: str, prefix: tuple[int, ...], field: FieldDescriptor, limit: RequestLimit, beside: bytes
) -> Iterator[LargeRequest]:
    """`{"a": [null, null, …]}`, and a struct with as many keys."""
    count, over = limit.elements - len(prefix) - 1, limit.elements + 1
    null = _field(1, b"\x08\x00")

    def with_list(size: int) -> bytes:
        return _wrap(
            prefix,
            _field(field.number, _field(1, _field(1, b"a") + _field(2, _field(6, null * size)))),
        )

    def with_keys(size: int) -> bytes:
        entries = (_field(1, _field(1, b"%x" % i) + _field(2, b"\x08\x00")) for i in range(size))
        return _wrap(prefix, _field(field.number, b"".join(entries)))

    yield LargeRequest(f"{label}: values", beside + with_list(count), beside + with_list(over))
    yield LargeRequest(f"{label}: keys", beside + with_keys(count), beside + with_keys(over))


def _names(request: Descriptor, named: dict[str, str], but: str) -> bytes:
    return b"".join(
        _field(field.number, named[field.name].encode())
        for field in request.fields
        if field.name in named and field.name != but and field.type == field.TYPE_STRING
    )


def _wrap(prefix: tuple[int, ...], content: bytes) -> bytes:
    for number in reversed(prefix):
        content = _field(number, content)
    return content


def _field(number: int, content: bytes) -> bytes:
    return encode_field_header(number, len(content)) + content


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)
