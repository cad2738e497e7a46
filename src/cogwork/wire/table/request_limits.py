"""Limits the size of requests, based on the descriptors of their messages.

The size and the number of elements are checked before a message is parsed. A message with an image,
a point cloud, audio, tensors or a file may be large, but only because of that payload.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from cogwork.core.errors import CogworkError
from cogwork.wire.messages.element_count import count_elements
from cogwork.wire.messages.protobuf_encoding import read_varint
from cogwork.wire.table.handlers import Method

MAX_REQUEST_SIZE = 1 << 25
"""Maximum bytes of a message with a payload; also the limit of the transports."""
MAX_UPLOAD_SIZE = 100 << 20
"""Maximum bytes of a message with the archive of a module, which the SDK sends in one message."""
MAX_FLEET_SIZE = 1 << 23
"""Maximum bytes of a message with logs, or with a configuration, which is sent both as text and as
Struct."""
DEFAULT_MAX_SIZE = 1 << 18
"""Maximum bytes of every other message, and of the rest of a message with a payload."""
MAX_ELEMENTS = 10_000
"""Maximum elements in all lists and maps of a message, together."""
MAX_COMMAND_ELEMENTS = 30_000
"""Maximum elements of a command. It is higher than `MAX_ELEMENTS`, because a command is converted
outside the event loop."""
_MAX_FIELDS_SCANNED = 4096
"""Maximum fields to scan for the payload."""
_UNCOUNTED_SIZE = 1 << 12
"""Size in bytes up to which elements are not counted, because such a small message cannot exceed
the limit."""
_NON_PAYLOAD_FIELDS = frozenset({"uuid", "trace_id", "span_id", "parent_span_id", "value"})
"""Names of `bytes` fields that hold an identifier or an arbitrary value, not a payload."""
_FLEET_MESSAGES = frozenset(
    f"viam.app.v1.{name}Request"
    for name in ("UpdateRobotPart", "CreateFragment", "UpdateFragment", "Log")
)
_UPLOAD_MESSAGES = ("viam.app.v1.UploadModuleFileRequest",)
_STRUCTS = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")


class RequestTooLarge(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class RequestLimit:
    size: int
    """Maximum bytes of the whole message."""
    elements: int = MAX_ELEMENTS
    """Maximum elements in all of its lists and maps, together."""
    message: Descriptor | None = None
    """The type of the message; None if it is unknown."""
    has_payload: bool = False
    """Whether the message has a payload. The rest of the message is limited to
    `DEFAULT_MAX_SIZE`."""

    def check(self, data: bytes, path: str) -> None:
        """Raise RequestTooLarge if the unparsed message is too large."""
        size = len(data)
        if size > self.size:
            raise RequestTooLarge(
                f"the request to {path} has {size} bytes; at most {self.size} are accepted"
            )
        if (
            self.message is not None
            and self.has_payload
            and size > DEFAULT_MAX_SIZE
            and _count_overhead(data, self.message) > DEFAULT_MAX_SIZE
        ):
            raise RequestTooLarge(
                f"the request to {path} has more than {DEFAULT_MAX_SIZE} bytes besides its payload"
            )

    def count_elements(self, data: bytes, path: str) -> int:
        """Return the number of elements of the unparsed message; 0 for a small message.

        Raise RequestTooLarge if there are too many.
        """
        if len(data) <= _UNCOUNTED_SIZE or self.message is None:
            return 0
        elements = count_elements(data, self.message, self.elements)
        if elements > self.elements:
            raise RequestTooLarge(
                f"the request to {path} has more than {self.elements} elements in its lists and "
                "maps; send fewer at a time"
            )
        return elements


UNKNOWN_MESSAGE_LIMIT = RequestLimit(MAX_REQUEST_SIZE)
"""The limit for methods whose message type is unknown."""


def limit_of(method: Method) -> RequestLimit:
    """Return the limit of a method. Methods that take raw bytes must check the payload
    themselves."""
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
        is_upload = message.full_name in _UPLOAD_MESSAGES
        size = MAX_UPLOAD_SIZE if is_upload else MAX_REQUEST_SIZE
        return RequestLimit(size, message=message, has_payload=True)
    if "command" in message.fields_by_name:
        return RequestLimit(MAX_REQUEST_SIZE, MAX_COMMAND_ELEMENTS, message)
    if message.full_name in _FLEET_MESSAGES:
        return RequestLimit(MAX_FLEET_SIZE, MAX_COMMAND_ELEMENTS, message)
    return RequestLimit(DEFAULT_MAX_SIZE, message=message)


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
    """Return the number of bytes outside the payload; MAX_REQUEST_SIZE if there are too many fields
    to scan."""
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
    # Skip the rest of a malformed message, because the parser rejects it later.
    return min(at + _FIXED_SIZES.get(kind, end), end)
