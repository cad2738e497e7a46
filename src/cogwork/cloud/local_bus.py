"""The bus of a cloud that is one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator

from cogwork.cloud.bus import MAX_UNREAD


class LocalBus:
    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[bytes]]] = defaultdict(set)

    def publish(self, topic: str, message: bytes) -> None:
        for queue in self._queues.get(topic, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(message)

    @contextlib.asynccontextmanager
    async def listen(self, topic: str) -> AsyncIterator[AsyncIterator[bytes]]:
        queue: asyncio.Queue[bytes] = asyncio.Queue(MAX_UNREAD)
        self._queues[topic].add(queue)
        try:
            yield _messages(queue)
        finally:
            self._queues[topic].remove(queue)
            if not self._queues[topic]:
                del self._queues[topic]


async def _messages(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await queue.get()
