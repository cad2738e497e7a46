"""Errors as the wire says them: a status code, and words that help."""

from __future__ import annotations

import asyncio
import logging

import grpc
from grpclib import GRPCError
from grpclib.const import Status

from cogwork.core.errors import CogworkError

_log = logging.getLogger("rdk.networking")


LONGEST = 4000
"""Characters of a message: it travels in a header, and peers drop headers that are too long."""


def status_of(error: BaseException, method: str) -> tuple[Status, str]:
    """What a client is told. What nobody foresaw is logged here and never sent as a traceback."""
    status, message = _told(error, method)
    return status, message if len(message) <= LONGEST else f"{message[:LONGEST]}…"


def _told(error: BaseException, method: str) -> tuple[Status, str]:
    match error:
        case GRPCError():
            return error.status, error.message or ""
        case CogworkError():
            return Status[error.status], str(error)
        case NotImplementedError():
            return Status.UNIMPLEMENTED, str(error) or f"{method} is not implemented here"
        case TimeoutError() | asyncio.TimeoutError():
            return Status.DEADLINE_EXCEEDED, str(error) or f"{method} took too long"
    told = getattr(error, "grpc_error", None)
    if isinstance(told, GRPCError):
        return _told(told, method)
    _log.error("%s failed", method, exc_info=error)
    return Status.UNKNOWN, f"{type(error).__name__}: {error}" if str(error) else repr(error)


_CODES = {code.value[0]: code for code in grpc.StatusCode}


def grpc_code(status: Status) -> grpc.StatusCode:
    return _CODES[status.value]
