"""Reads the body of an HTTP request, with limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cogwork.core.errors import InvalidRequest
from cogwork.wire.table.request_limits import RequestTooLarge

_GRACE = 5.0
"""Seconds that a client gets for a body, in addition to the time for its bytes at the minimum
rate."""
_MIN_RATE = 32 * 1024
"""Minimum bytes per second. A slower client would occupy a connection that other clients need."""

Receive = Callable[[], Awaitable[Any]]
"""Returns the next ASGI event."""


class ClientGone(InvalidRequest):
    """The client has disconnected before the end of its request."""


async def read_body(
    receive: Receive, max_size: int, on_chunk: Callable[[int], None] = lambda _: None
) -> bytes:
    """`on_chunk` is called with the size of each chunk, and may raise an error to reject it."""
    chunks: list[bytes] = []
    size = 0
    start = asyncio.get_running_loop().time()
    while True:
        try:
            async with asyncio.timeout_at(start + _GRACE + size / _MIN_RATE):
                event = await receive()
        except TimeoutError:
            raise InvalidRequest("the request arrives too slowly") from None
        if event["type"] == "http.disconnect":
            raise ClientGone("the client disconnected before the end of its request")
        chunk = event.get("body", b"")
        size += len(chunk)
        if size > max_size:
            raise RequestTooLarge(f"the request has more than {max_size} bytes")
        on_chunk(len(chunk))
        chunks.append(chunk)
        if not event.get("more_body", False):
            return b"".join(chunks)
