"""Limits the concurrent calls of each resource, shared fairly between clients.

A call that finds no free slot waits for a few seconds. Free slots go to the waiting clients in turn
(round robin), so that a client with hundreds of calls does not starve a client with a single call.
A stream that waits for events has a slot only while it opens.
"""

from __future__ import annotations

import asyncio
import contextlib
import operator
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.wire.messages.raw_request import read_resource_name
from cogwork.wire.messages.resource_field import name_field
from cogwork.wire.table.event_streams import EVENT_STREAMS, OPENING_TIME, EventStreams
from cogwork.wire.table.handlers import Handler, Method, Stream

STOP_METHODS = ("/Stop", "/StopAll", "/StopPlan")
"""Methods that end a motion; they are never limited."""


class TooManyCalls(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    running: int = 100
    """Maximum concurrent calls of one resource."""
    waiting: int = 512
    """Maximum calls of one client that wait for one resource."""
    timeout: float = 5.0
    """Maximum seconds that a call waits for a slot."""


class ConcurrencyLimiter:
    """Middleware that limits concurrent calls."""

    def __init__(
        self,
        clock: Clock,
        limits: ConcurrencyLimits | None = None,
        event_streams: EventStreams | None = None,
    ) -> None:
        self._clock = clock
        self._slots = SlotQueues(clock, limits or ConcurrencyLimits())
        self._event_streams = event_streams or EventStreams()

    def wrap(self, method: Method, handle: Handler) -> Handler:
        # The handler of an unregistered method calls `hold` itself, as soon as it knows the
        # resource.
        if method.path.endswith(STOP_METHODS) or method.is_unregistered:
            return handle
        service = method.service
        # Each method without a resource name has its own slots. Otherwise, modules that send many
        # logs would block requests for the machine's status.
        name_of = resource_name_reader(method)
        hold = self.hold_events if method.path in EVENT_STREAMS else self.hold

        async def wrapper(stream: Stream) -> None:
            name = name_of(stream.request)
            key = (service, name) if name else method.path
            async with hold(key, stream.peer, name or method.path):
                await handle(stream)

        return wrapper

    def hold(
        self, key: Hashable, client: str, target: str
    ) -> contextlib.AbstractAsyncContextManager[CallSlot]:
        """Run a call with a slot of the resource `key`, which is named `target` in errors.

        Raise TooManyCalls if no slot becomes free in time.
        """
        return self._slots.hold(key, client, target)

    @contextlib.asynccontextmanager
    async def hold_events(self, key: Hashable, client: str, target: str) -> AsyncIterator[None]:
        """Run an event stream with a place among the event streams. While it opens, it also has a
        slot.

        Raise TooManyCalls if there is no slot, and TooManyStreams if there is no place.
        """
        async with (
            self._event_streams.hold(client),
            self._slots.hold(key, client, target) as opening,
            self._release_when_open(opening),
        ):
            yield

    @contextlib.asynccontextmanager
    async def _release_when_open(self, slot: CallSlot) -> AsyncIterator[None]:
        """Release the slot as soon as the stream in this block counts as open."""

        async def release() -> None:
            await self._clock.sleep(OPENING_TIME)
            slot.release()

        releasing = asyncio.ensure_future(release())
        try:
            yield
        finally:
            releasing.cancel()


class CallSlot:
    """A call's slot, until it is released."""

    __slots__ = ("_client", "_queue")

    def __init__(self, queue: SlotQueue, client: str) -> None:
        self._queue: SlotQueue | None = queue
        self._client = client

    def release(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.release(self._client)


class SlotQueues:
    """The slots of many resources."""

    def __init__(self, clock: Clock, limits: ConcurrencyLimits) -> None:
        self._clock = clock
        self._limits = limits
        self._queues: dict[Hashable, SlotQueue] = {}

    @contextlib.asynccontextmanager
    async def hold(self, key: Hashable, client: str, target: str) -> AsyncIterator[CallSlot]:
        """Run the block with a slot of the resource `key`, which is named `target` in errors.

        The block may release the slot earlier. Raise TooManyCalls if too many calls of the client
        wait, or if this call waits for too long.
        """
        slots = self._queues.get(key)
        if slots is None:
            slots = self._queues[key] = SlotQueue(self._limits)
        try:
            if not slots.try_acquire(client):
                await self._wait_for_slot(slots, client, target)
            slot = CallSlot(slots, client)
            try:
                yield slot
            finally:
                slot.release()
        finally:
            if slots.is_idle and self._queues.get(key) is slots:
                del self._queues[key]

    async def _wait_for_slot(self, slots: SlotQueue, client: str, target: str) -> None:
        turn = slots.enqueue(client)
        if turn is None:
            raise TooManyCalls(
                f"{self._limits.waiting} of your calls already wait for {target}; "
                "wait for some of them to finish"
            )
        if not await slots.wait_for_turn(client, turn, self._clock):
            raise TooManyCalls(
                f"{target} has {slots.running} calls in flight, {slots.held_by(client)} of them "
                "yours; wait for some of them to finish"
            )


def resource_name_reader(method: Method) -> Callable[[Any], str | None]:
    """Return a function that reads the resource name from a request.

    The function returns None for client streams, whose resource is known only after the first
    message.
    """
    if method.is_unregistered or method.cardinality.client_streaming:
        return lambda _: None
    if method.request is None:
        return read_resource_name
    field = name_field(method.request.DESCRIPTOR)
    return operator.attrgetter(field) if field is not None else lambda _: None


@dataclass(slots=True)
class SlotQueue:
    """The slots of one resource: the clients that hold slots, and the queues of waiting clients."""

    limits: ConcurrencyLimits
    running: int = 0
    held: dict[str, int] = field(default_factory=dict)
    queues: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """Waiting calls by client, in the order in which the clients are served."""

    @property
    def is_idle(self) -> bool:
        return not self.running and not self.queues

    def held_by(self, client: str) -> int:
        return self.held.get(client, 0)

    def try_acquire(self, client: str) -> bool:
        if client in self.queues or not self._can_acquire(client):
            return False
        self._grant(client)
        return True

    def release(self, client: str) -> None:
        self.running -= 1
        left = self.held[client] - 1
        if left:
            self.held[client] = left
        else:
            del self.held[client]
        if self.queues:
            self._grant_waiting()

    def enqueue(self, client: str) -> asyncio.Future[None] | None:
        """Return a future that is done when the client gets a slot; None if too many calls of the
        client wait already."""
        queue = self.queues.setdefault(client, deque())
        if len(queue) >= self.limits.waiting:
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        return turn

    async def wait_for_turn(self, client: str, turn: asyncio.Future[None], clock: Clock) -> bool:
        """Wait for the slot, and return whether it was granted in time.

        If it was granted, the caller must release it.
        """
        try:
            await clock.wait({turn}, self.limits.timeout)
        except asyncio.CancelledError:
            # The slot may have been granted just before the cancellation.
            if self.leave_queue(client, turn):
                self.release(client)
            raise
        return self.leave_queue(client, turn)

    def leave_queue(self, client: str, turn: asyncio.Future[None]) -> bool:
        """Leave the queue, and return whether the slot was granted. If it was, the caller must
        release it."""
        if turn.done():
            return True
        self.queues[client].remove(turn)
        if not self.queues[client]:
            del self.queues[client]
        return False

    def _can_acquire(self, client: str) -> bool:
        """Return whether the client is below its fair share.

        The share is computed for one additional client, so that the next client finds a free slot.
        """
        if self.running >= self.limits.running:
            return False
        clients = len(self.held) + (client not in self.held)
        return self.held_by(client) < max(1, self.limits.running // (clients + 1))

    def _grant(self, client: str) -> None:
        self.running += 1
        self.held[client] = self.held.get(client, 0) + 1

    def _grant_waiting(self) -> None:
        """Grant slots to waiting calls until no client can get another one.

        Several calls may get a slot at once, because the shares of all other clients grow when a
        client disconnects.
        """
        while (client := self._next_client()) is not None:
            queue = self.queues.pop(client)
            queue.popleft().set_result(None)
            self._grant(client)
            if queue:
                self.queues[client] = queue

    def _next_client(self) -> str | None:
        return next((client for client in self.queues if self._can_acquire(client)), None)
