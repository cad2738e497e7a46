"""The bus of a cloud with a single process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator

from cogwork.cloud.storage.bus import MAX_UNREAD, MAX_UNREAD_BYTES


class LocalBus:
    def __init__(self) -> None:
        self._inboxes: dict[str, set[_Inbox]] = defaultdict(set)

    def publish(self, topic: str, message: bytes) -> None:
        for inbox in self._inboxes.get(topic, ()):
            inbox.put(message)

    @contextlib.asynccontextmanager
    async def listen(self, topic: str) -> AsyncIterator[AsyncIterator[bytes]]:
        inbox = _Inbox()
        self._inboxes[topic].add(inbox)
        try:
            yield inbox.messages()
        finally:
            self._inboxes[topic].remove(inbox)
            if not self._inboxes[topic]:
                del self._inboxes[topic]


class _Inbox:
    """The unread messages of one reader."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(MAX_UNREAD)
        self._size = 0

    def put(self, message: bytes) -> None:
        """Add a message. Drop the oldest messages above the limit."""
        while self._queue.full() or (self._size and self._size + len(message) > MAX_UNREAD_BYTES):
            self._size -= len(self._queue.get_nowait())
        self._queue.put_nowait(message)
        self._size += len(message)

    async def messages(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._queue.get()
            self._size -= len(message)
            yield message
