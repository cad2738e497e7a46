"""Single flight: concurrent requests share one run of the work and its latest result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cogwork.core.errors import Interrupted

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs the work once for each key, and never concurrently.

    Requests that arrive during a run get its result, even if their key is newer. So slow work on
    camera images skips images instead of queueing them. After a failure, the next request runs the
    work again.
    """

    def __init__(self) -> None:
        self._key: object = None
        self._future: asyncio.Future[T] | None = None
        self._closed = False

    @property
    def is_busy(self) -> bool:
        return self._future is not None and not self._future.done()

    async def get(self, key: object, start: Callable[[], asyncio.Future[T]]) -> T:
        future = self._future
        if future is None or (future.done() and self._key != key):
            future = self._begin(key, start)
        if not future.done():
            await asyncio.wait([future])
        if future.cancelled():
            raise Interrupted("the resource was closed while this call waited for its result")
        try:
            return future.result()
        finally:
            del future  # breaks the reference cycle between the future and its exception

    async def aclose(self) -> None:
        self._closed = True
        if self._future is not None:
            self._future.cancel()
            await asyncio.wait([self._future])

    def _begin(self, key: object, start: Callable[[], asyncio.Future[T]]) -> asyncio.Future[T]:
        if self._closed:
            raise Interrupted("the resource was closed before this call began its work")
        self._future, self._key = start(), key
        self._future.add_done_callback(self._on_done)
        return self._future

    def _on_done(self, future: asyncio.Future[T]) -> None:
        # Retrieve the exception here, because all waiters may have been cancelled.
        if (future.cancelled() or future.exception() is not None) and self._future is future:
            self._future = self._key = None


class SingleFlightGroup(Generic[T]):
    """A single flight for each thing, such as each source of a camera. If there are too many, an
    idle single flight is dropped before another is added."""

    def __init__(self, max_flights: int = 16) -> None:
        self._max_flights = max_flights
        self._flights: dict[Hashable, SingleFlight[T]] = {}

    async def get(self, thing: Hashable, key: object, start: Callable[[], asyncio.Future[T]]) -> T:
        flight = self._flights.get(thing)
        if flight is None:
            self._make_room()
            flight = self._flights[thing] = SingleFlight()
        return await flight.get(key, start)

    async def aclose(self) -> None:
        for flight in list(self._flights.values()):
            await flight.aclose()

    def _make_room(self) -> None:
        if len(self._flights) >= self._max_flights:
            idle = next(
                (thing for thing, flight in self._flights.items() if not flight.is_busy), None
            )
            if idle is not None:
                del self._flights[idle]
