"""The empty message at the beginning of some streams.

Clients in Go wait for it before they return the stream, and discard it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from cogwork.wire.table.event_streams import OPENING_TIME
from cogwork.wire.table.handlers import Metadata, Stream

OPENED_BY_A_MESSAGE: Final = frozenset(
    {
        "/viam.component.board.v1.BoardService/StreamTicks",
        "/viam.service.worldstatestore.v1.WorldStateStoreService/StreamTransformChanges",
    }
)
"""The methods whose streams begin with an empty message."""


@contextlib.asynccontextmanager
async def opened_by_a_message(stream: Stream) -> AsyncIterator[Stream]:
    """Provide a stream for a handler that forwards the replies of another process.

    The empty message is sent when the other process opens its stream, or shortly afterwards. An
    empty message from the other process is dropped.
    """
    opened = _OpenedStream(stream)
    timer = asyncio.ensure_future(opened.open_late())
    try:
        yield opened
    finally:
        timer.cancel()


class _OpenedStream:
    """Inserts the empty message before a stream's replies."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._sending = asyncio.Lock()
        self._is_open = False
        self._has_replied = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def open_late(self) -> None:
        await asyncio.sleep(OPENING_TIME)
        await self._open()

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        if not self._is_open:
            await self._stream.send_initial_metadata(metadata=metadata)
            await self._open()

    async def send_message(self, message: bytes, *, end: bool = False) -> None:
        await self._open()
        is_first, self._has_replied = not self._has_replied, True
        if message or not is_first:
            async with self._sending:
                await self._stream.send_message(message, end=end)

    async def _open(self) -> None:
        async with self._sending:
            if not self._is_open:
                self._is_open = True
                await self._stream.send_message(b"")
