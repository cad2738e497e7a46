"""Errors as the wire says them: a status code, and words that help."""

from __future__ import annotations

import asyncio
import itertools
import logging

import grpc
from grpclib import GRPCError
from grpclib.const import Status

from cogwork.core.errors import CogworkError

_log = logging.getLogger("rdk.networking")


LONGEST = 4000
"""Bytes of a message: it travels in a header, and peers drop headers that are too long."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}
"""Bytes that travel as they are; every other one takes three."""
_WORST = 12
"""Bytes that a single character may take."""


def status_of(error: BaseException, method: str) -> tuple[Status, str]:
    """What a client is told. What nobody foresaw is logged here and never sent as a traceback."""
    status, message = _told(error, method)
    return status, _fitting(message)


def _told(error: BaseException, method: str) -> tuple[Status, str]:
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
    told = getattr(error, "grpc_error", None)
    if isinstance(told, GRPCError):
        return _told(told, method)
    _log.error("%s failed", method, exc_info=error)
    return Status.UNKNOWN, _words_of(error)


def _words_of(error: BaseException) -> str:
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    try:
        return f"{kind}: {error}" if str(error) else repr(error)
    except Exception:
        return f"{kind}, which cannot be put into words"


def _fitting(message: str) -> str:
    """Cut to what may travel, and without what is no text."""
    data = message[:LONGEST].encode(errors="replace")
    if len(message) * _WORST <= LONGEST:
        return data.decode()
    sizes = itertools.accumulate(1 if byte in _PLAIN else 3 for byte in data)
    end = sum(size <= LONGEST for size in sizes)
    text = data[:end].decode(errors="ignore")
    return text if end == len(data) and len(message) <= LONGEST else f"{text}…"


_CODES = {code.value[0]: code for code in grpc.StatusCode}


def grpc_code(status: Status) -> grpc.StatusCode:
    return _CODES[status.value]
