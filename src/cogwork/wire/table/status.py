"""Converts errors to gRPC statuses: a code and a helpful message."""

from __future__ import annotations

import asyncio
import itertools
import logging
from urllib.parse import quote

import grpc
from grpclib import GRPCError
from grpclib.const import Status

from cogwork.core.error_text import typed_error_text
from cogwork.core.errors import CogworkError

_log = logging.getLogger("rdk.networking")


MAX_MESSAGE_BYTES = 4000
"""Maximum bytes of a message. The message is sent in a header, and peers drop long headers."""
_UNESCAPED_BYTES = frozenset(range(0x20, 0x7F)) - {ord("%")}
"""Bytes that are sent unchanged. Every other byte is percent-encoded as three bytes."""
_MAX_BYTES_PER_CHARACTER = 12
"""Maximum encoded bytes of one character: four UTF-8 bytes, each percent-encoded."""


def status_of(error: BaseException, method: str) -> tuple[Status, str]:
    """Return the status for a client.

    An unexpected error is logged here with its traceback, which is never sent.
    """
    status, message = _to_status(error, method)
    return status, _truncate(message)


def _to_status(error: BaseException, method: str) -> tuple[Status, str]:
    match error:
        case GRPCError(status=Status.UNIMPLEMENTED, message=None):
            return Status.UNIMPLEMENTED, f"{method} is not implemented here"
        case GRPCError(status=status) if status is not Status.OK:
            return status, str(error.message or f"{method} failed: {status.name}")
        case CogworkError():
            return Status[error.status], str(error)
        case NotImplementedError():
            return Status.UNIMPLEMENTED, str(error) or f"{method} is not implemented here"
        case TimeoutError() | asyncio.TimeoutError():
            return Status.DEADLINE_EXCEEDED, str(error) or f"{method} took too long"
        case asyncio.CancelledError():
            return Status.CANCELLED, f"{method} was cancelled by the resource itself"
    cause = getattr(error, "grpc_error", None)
    if isinstance(cause, GRPCError):
        return _to_status(cause, method)
    _log.error("the method %s failed with an unexpected error", method, exc_info=error)
    return Status.UNKNOWN, typed_error_text(error)


def _truncate(message: str) -> str:
    """Truncate a message to the limit, and replace characters that UTF-8 cannot encode."""
    data = message[:MAX_MESSAGE_BYTES].encode(errors="replace")
    if len(message) * _MAX_BYTES_PER_CHARACTER <= MAX_MESSAGE_BYTES:
        return data.decode()
    sizes = itertools.accumulate(1 if byte in _UNESCAPED_BYTES else 3 for byte in data)
    end = sum(size <= MAX_MESSAGE_BYTES for size in sizes)
    text = data[:end].decode(errors="ignore")
    return text if end == len(data) and len(message) <= MAX_MESSAGE_BYTES else f"{text}…"


def quote_message(message: str) -> str:
    """Percent-encode a message for an HTTP header."""
    return quote(message, safe=_UNQUOTED)


_UNQUOTED = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def grpc_code(status: Status) -> grpc.StatusCode:
    return _CODES[status.value]


def code_of_number(number: int) -> grpc.StatusCode:
    """Return the status code for a number that another program has sent."""
    return _CODES.get(number, grpc.StatusCode.UNKNOWN)
