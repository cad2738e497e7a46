"""Parses the messages of requests, within the limits of their method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.byte_budget import Hold
from cogwork.wire.table.handlers import Method
from cogwork.wire.table.request_limits import limit_of

ELEMENT_SIZE = 256
"""Bytes of memory reserved per element, for its parsed and its converted form."""

Parse = Callable[[bytes, Hold], Any]
"""Parses a message, and reserves memory for its elements."""


def make_size_check(method: Method) -> Callable[[bytes], None]:
    check, path = limit_of(method).check, method.path
    return lambda data: check(data, path)


def make_parser(method: Method) -> Parse:
    kind = method.request
    if kind is None:
        return keep_bytes
    decode, count_elements = kind.FromString, limit_of(method).count_elements

    def parse(data: bytes, hold: Hold) -> Any:
        elements = count_elements(data, method.path)
        if elements:
            hold.acquire(elements * ELEMENT_SIZE)
        try:
            return decode(data)
        except DecodeError:
            name = kind.DESCRIPTOR.full_name
            raise InvalidRequest(
                f"the request to {method.path} is not a valid {name} message"
            ) from None

    return parse


def keep_bytes(data: bytes, _: Hold) -> bytes:
    return data


def accept_any(_: bytes) -> None: ...
