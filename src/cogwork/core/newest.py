"""The newest outcome of some work, shared by everybody who wants one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cogwork.core.errors import Interrupted

T = TypeVar("T")


class Newest(Generic[T]):
    """Work is done once for each key, and never twice at a time: whoever asks while it is under
    way gets what comes of it, so that slow work skips pictures instead of queueing them. What
    failed is done again for whoever asks next."""

    def __init__(self) -> None:
        self._key: object = None
        self._future: asyncio.Future[T] | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        return self._future is not None and not self._future.done()

    async def of(self, key: object, start: Callable[[], asyncio.Future[T]]) -> T:
        future = self._future
        if future is None or (future.done() and self._key != key):
            future = self._begin(key, start)
        if not future.done():
            await asyncio.wait([future])
        if future.cancelled():
            raise Interrupted("it was closed before the work was done")
        try:
            return future.result()
        finally:
            del future  # an error would keep it, and it the error

    async def aclose(self) -> None:
        self._closed = True
        if self._future is not None:
            self._future.cancel()
            await asyncio.wait([self._future])

    def _begin(self, key: object, start: Callable[[], asyncio.Future[T]]) -> asyncio.Future[T]:
        if self._closed:
            raise Interrupted("it is closed")
        self._future, self._key = start(), key
        self._future.add_done_callback(self._ended)
        return self._future

    def _ended(self, future: asyncio.Future[T]) -> None:
        # Asked for the error here, since everybody may have given up by now.
        if (future.cancelled() or future.exception() is not None) and self._future is future:
            self._future = self._key = None


class NewestOfEach(Generic[T]):
    """One for each of a few things, such as the sources of a camera. Where they turn out to be
    many, idle ones are forgotten."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._each: dict[Hashable, Newest[T]] = {}

    async def of(self, thing: Hashable, key: object, start: Callable[[], asyncio.Future[T]]) -> T:
        newest = self._each.get(thing)
        if newest is None:
            self._make_room()
            newest = self._each[thing] = Newest()
        return await newest.of(key, start)

    async def aclose(self) -> None:
        for newest in list(self._each.values()):
            await newest.aclose()

    def _make_room(self) -> None:
        if len(self._each) >= self._most:
            idle = next((each for each, newest in self._each.items() if not newest.busy), None)
            if idle is not None:
                del self._each[idle]
