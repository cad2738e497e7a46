"""Parses the messages of requests, within the limits of their method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from cogwork.core.errors import InvalidRequest
from cogwork.wire.handlers import Method
from cogwork.wire.request_limits import limit_of


def make_size_check(method: Method) -> Callable[[bytes], None]:
    check, path = limit_of(method).check, method.path
    return lambda data: check(data, path)


def make_parser(method: Method) -> Callable[[bytes], Any]:
    kind = method.request
    if kind is None:
        return bytes
    decode, check_elements = kind.FromString, limit_of(method).check_elements

    def parse(data: bytes) -> Any:
        try:
            message = decode(data)
        except DecodeError:
            name = kind.DESCRIPTOR.full_name
            raise InvalidRequest(
                f"the request to {method.path} is not a valid {name} message"
            ) from None
        check_elements(message, len(data), method.path)
        return message

    return parse
