"""Receives the first message of a client stream, which names the target of the call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from cogwork.core.errors import InvalidRequest
from cogwork.wire.table.handlers import Stream

T = TypeVar("T")

FIRST_MESSAGE_TIMEOUT = 10.0
"""Maximum seconds until a client sends its first message."""


async def recv_first_message(stream: Stream, path: str) -> Any:
    """Return the first message. Raise InvalidRequest if a client opens a stream but sends none."""
    first = await with_timeout(stream.recv_message(), path)
    if first is None:
        raise InvalidRequest(
            f"{path} ended before its first message, which names the target of the call"
        )
    return first


async def with_timeout(first: Awaitable[T], path: str) -> T:
    try:
        async with asyncio.timeout(FIRST_MESSAGE_TIMEOUT):
            return await first
    except TimeoutError:
        raise InvalidRequest(
            f"{path} received no message within {FIRST_MESSAGE_TIMEOUT:g}s; send the first message "
            "at once, because it names the target of the call"
        ) from None
