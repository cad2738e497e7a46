"""No error that a client gets quotes a secret; all others are as they were."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Cardinality, Status

from cogwork.core.errors import InvalidRequest
from cogwork.wire.handlers import Method
from cogwork.wire.redacted_errors import redact_errors


async def error_of(error: Exception) -> Exception:
    async def handle(_: Any) -> None:
        raise error

    method = Method("/a.B/C", Cardinality.UNARY_UNARY, handle)
    around = redact_errors(lambda text: text.replace("hunter-22", "***"))
    with pytest.raises(type(error) if "hunter" not in str(error) else GRPCError) as raised:
        await around(method, handle)(None)  # type: ignore[arg-type]
    return raised.value


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("hunter-22"), Status.UNKNOWN, "ValueError: ***"),
        (InvalidRequest("not hunter-22"), Status.INVALID_ARGUMENT, "not ***"),
        (GRPCError(Status.ABORTED, "hunter-22!"), Status.ABORTED, "***!"),
    ],
)
async def test_a_secret_is_masked(error: Exception, status: Status, words: str) -> None:
    told = await error_of(error)
    assert isinstance(told, GRPCError)
    assert (told.status, told.message) == (status, words)


async def test_others_stay_as_they_are() -> None:
    error = KeyError("fps")
    assert await error_of(error) is error
