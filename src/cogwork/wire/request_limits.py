"""Limits the size of requests, based on the descriptors of their messages.

The size in bytes is checked before a message is parsed, and the number of elements before the
message is processed. A message with an image, a point cloud, audio, tensors or a file may be large,
but only because of that payload.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from cogwork.core.errors import CogworkError
from cogwork.wire.handlers import Method
from cogwork.wire.protobuf_encoding import read_varint

MAX_REQUEST_SIZE = 1 << 25
"""Maximum bytes of a message with a payload; also the limit of the transports."""
MAX_COMMAND_SIZE = 1 << 21
"""Maximum bytes of a command, which may contain anything."""
MAX_FLEET_SIZE = 1 << 23
"""Maximum bytes of a configuration for a cloud, once as text and once as Struct, or of logs."""
DEFAULT_MAX_SIZE = 1 << 18
"""Maximum bytes of every other message, and of the rest of a message with a payload."""
MAX_ELEMENTS = 10_000
"""Maximum elements in all lists and maps of a message, together."""
MAX_COMMAND_ELEMENTS = 30_000
"""Maximum elements of a command, which is converted outside the event loop."""
_MAX_FIELDS_SCANNED = 4096
"""Maximum fields to scan for the payload."""
_NUMBERS_PER_ELEMENT = 8
"""Numbers that count as one element: they cost less than a message or a string."""
_UNCOUNTED_SIZE = 1 << 12
"""Bytes. A message of this size or less cannot hold enough elements to matter."""
_NON_PAYLOAD_FIELDS = frozenset({"uuid", "trace_id", "span_id", "parent_span_id", "value"})
"""Names of `bytes` fields that hold an identifier or an arbitrary value, not a payload."""
_FLEET_MESSAGES = frozenset(
    f"viam.app.v1.{name}Request"
    for name in ("UpdateRobotPart", "CreateFragment", "UpdateFragment", "Log")
)
_STRUCTS = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")


class RequestTooLarge(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class RequestLimit:
    size: int
    """Maximum bytes of the whole message."""
    elements: int = MAX_ELEMENTS
    """Maximum elements in all of its lists and maps, together."""
    payload: Descriptor | None = None
    """The message, if it has a payload: the rest of it is limited to `DEFAULT_MAX_SIZE`."""

    def check(self, data: bytes, path: str) -> None:
        """Raise RequestTooLarge if the unparsed message is too large."""
        size = len(data)
        if size > self.size:
            raise RequestTooLarge(
                f"the request to {path} has {size} bytes; at most {self.size} are accepted"
            )
        if (
            self.payload is not None
            and size > DEFAULT_MAX_SIZE
            and _count_overhead(data, self.payload) > DEFAULT_MAX_SIZE
        ):
            raise RequestTooLarge(
                f"the request to {path} has more than {DEFAULT_MAX_SIZE} bytes besides its payload"
            )

    def check_elements(self, message: Message, size: int, path: str) -> None:
        """Raise RequestTooLarge if a message that was parsed from `size` bytes has too many."""
        if size > _UNCOUNTED_SIZE and _count_elements(message, self.elements) > self.elements:
            raise RequestTooLarge(
                f"the request to {path} has more than {self.elements} elements in its lists and "
                "maps; send fewer at a time"
            )


UNKNOWN_MESSAGE_LIMIT = RequestLimit(MAX_REQUEST_SIZE)
"""Limit for methods whose message type is unknown."""


def limit_of(method: Method) -> RequestLimit:
    """Return the limit of a method. Methods that take raw bytes check the payload themselves."""
    if method.is_unregistered:
        return UNKNOWN_MESSAGE_LIMIT
    if method.request is not None:
        message: Any = method.request.DESCRIPTOR
        return message_limit(message)
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    try:
        described = pool.FindMethodByName(method.path.lstrip("/").replace("/", "."))
    except KeyError:
        return UNKNOWN_MESSAGE_LIMIT
    return RequestLimit(message_limit(described.input_type).size)


def message_limit(message: Descriptor) -> RequestLimit:
    if _has_payload(message):
        return RequestLimit(MAX_REQUEST_SIZE, payload=message)
    if "command" in message.fields_by_name:
        return RequestLimit(MAX_COMMAND_SIZE, MAX_COMMAND_ELEMENTS)
    if message.full_name in _FLEET_MESSAGES:
        return RequestLimit(MAX_FLEET_SIZE, MAX_COMMAND_ELEMENTS)
    return RequestLimit(DEFAULT_MAX_SIZE)


@functools.cache
def _has_payload(message: Descriptor, seen: frozenset[str] = frozenset()) -> bool:
    if message.full_name in seen or message.full_name in _STRUCTS:
        return False
    inner = seen | {message.full_name}
    return any(
        _is_payload(field) or (field.message_type and _has_payload(field.message_type, inner))
        for field in message.fields
    )


def _is_payload(field: FieldDescriptor) -> bool:
    return field.type == FieldDescriptor.TYPE_BYTES and field.name not in _NON_PAYLOAD_FIELDS


def _count_overhead(data: bytes, message: Descriptor) -> int:
    """Return how many bytes are not payload; MAX_REQUEST_SIZE if there are too many fields."""
    overhead, fields = 0, 0
    pending: list[tuple[int, int, Descriptor]] = [(0, len(data), message)]
    while pending:
        at, end, kind = pending.pop()
        while at < end:
            fields += 1
            if fields > _MAX_FIELDS_SCANNED:
                return MAX_REQUEST_SIZE
            begin = at
            key, at = read_varint(data, at, end)
            field = kind.fields_by_number.get(key >> 3)
            if key & 7 != _LENGTH_DELIMITED:
                at = _skip_value(data, at, end, key & 7)
                overhead += at - begin
                continue
            size, at = read_varint(data, at, end)
            content, at = at, min(at + size, end)
            overhead += content - begin
            if field is not None and _is_payload(field):
                continue
            if field is not None and field.message_type and _has_payload(field.message_type):
                pending.append((content, at, field.message_type))
            else:
                overhead += at - content
    return overhead


_LENGTH_DELIMITED = 2
_FIXED_SIZES = {1: 8, 5: 4}


def _skip_value(data: bytes, at: int, end: int, kind: int) -> int:
    if kind == 0:
        return read_varint(data, at, end)[1]
    # Skip the rest of a malformed message; the parser rejects it later.
    return min(at + _FIXED_SIZES.get(kind, end), end)


def _count_elements(message: Message, limit: int) -> int:
    """Count elements at all depths, and stop soon after the count exceeds `limit`."""
    total = 0
    pending: list[Any] = [message]
    while pending and total <= limit:
        for field, value in pending.pop().ListFields():
            if not field.is_repeated:
                if field.message_type is not None:
                    pending.append(value)
                continue
            total += len(value) // (_NUMBERS_PER_ELEMENT if _holds_numbers(field) else 1)
            if total > limit:
                break
            if _holds_messages(field):
                pending.extend(_iter_messages(field, value))
    return total


def _holds_numbers(field: FieldDescriptor) -> bool:
    return field.message_type is None and field.type not in (
        FieldDescriptor.TYPE_STRING,
        FieldDescriptor.TYPE_BYTES,
    )


def _holds_messages(field: FieldDescriptor) -> bool:
    kind = field.message_type
    if kind is None:
        return False
    if kind.GetOptions().map_entry:
        return kind.fields_by_name["value"].message_type is not None
    return True


def _iter_messages(field: FieldDescriptor, value: Any) -> Iterator[Any]:
    return iter(value.values() if field.message_type.GetOptions().map_entry else value)
