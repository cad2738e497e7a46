"""Middleware that removes secrets from the errors that clients receive."""

from __future__ import annotations

from collections.abc import Callable

from grpclib import GRPCError

from cogwork.wire.table.handlers import Handler, Method, Middleware, Stream
from cogwork.wire.table.status import status_of


def redact_errors(redact: Callable[[str], str]) -> Middleware:
    """Return middleware that applies `redact`, a function that removes secrets from a text."""

    def wrap(method: Method, handle: Handler) -> Handler:
        async def wrapper(stream: Stream) -> None:
            try:
                await handle(stream)
            except Exception as error:
                text = _error_text(error)
                if redact(text) == text:
                    raise
                status, message = status_of(error, method.path)
                raise GRPCError(status, redact(message)) from None

        return wrapper

    return wrap


def _error_text(error: Exception) -> str:
    try:
        return str(getattr(error, "grpc_error", error))
    except Exception:
        return ""
