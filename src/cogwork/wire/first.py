"""The first message of a stream, which says whom the others are for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from cogwork.core.errors import InvalidRequest
from cogwork.wire.handlers import Stream

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds in which a client says what it wants."""


async def first_message(stream: Stream, path: str) -> Any:
    """Whoever opens a stream and then says nothing does not keep it."""
    first = await in_time(stream.recv_message(), path)
    if first is None:
        raise InvalidRequest(
            f"{path} ended ahead of its first message, which says whom the call is for"
        )
    return first


async def in_time(first: Awaitable[T], path: str) -> T:
    try:
        async with asyncio.timeout(PATIENCE):
            return await first
    except TimeoutError:
        raise InvalidRequest(
            f"{path} got no message within {PATIENCE:g} s: send the first one at once, it says "
            "whom the call is for"
        ) from None
