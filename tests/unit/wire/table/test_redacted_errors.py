"""Errors to clients contain no secret; other errors are unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Cardinality, Status

from cogwork.core.errors import InvalidRequest
from cogwork.wire.table.handlers import Method
from cogwork.wire.table.redacted_errors import redact_errors


async def redacted_error(error: Exception) -> Exception:
    async def handle(_: Any) -> None:
        raise error

    method = Method("/a.B/C", Cardinality.UNARY_UNARY, handle)
    middleware = redact_errors(lambda text: text.replace("hunter-22", "***"))
    with pytest.raises(type(error) if "hunter" not in str(error) else GRPCError) as raised:
        await middleware(method, handle)(None)  # type: ignore[arg-type]
    return raised.value


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("hunter-22"), Status.UNKNOWN, "ValueError: ***"),
        (InvalidRequest("not hunter-22"), Status.INVALID_ARGUMENT, "not ***"),
        (GRPCError(Status.ABORTED, "hunter-22!"), Status.ABORTED, "***!"),
    ],
)
async def test_secret_in_an_error_is_masked(error: Exception, status: Status, words: str) -> None:
    redacted = await redacted_error(error)
    assert isinstance(redacted, GRPCError)
    assert (redacted.status, redacted.message) == (status, words)


async def test_error_without_a_secret_is_unchanged() -> None:
    error = KeyError("fps")
    assert await redacted_error(error) is error
