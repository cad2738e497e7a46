"""How many calls of one resource run at once, shared fairly between clients.

A call that finds no place waits a little; places that become free go round between the clients
that wait, so that one with hundreds of calls does not keep out one with a single call.
"""

from __future__ import annotations

import asyncio
import operator
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.wire.foreign import name_in
from cogwork.wire.handlers import Handle, Method, Stream
from cogwork.wire.naming import name_field

_ALWAYS = ("/Stop", "/StopAll", "/StopPlan")
"""What ends a motion waits for nobody."""


class TooManyCalls(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Shares:
    running: int = 100
    """Calls of one resource that run at once."""
    waiting: int = 512
    """Calls of one client that wait for one resource."""
    patience: float = 5.0
    """Seconds a call waits for a place."""


class Fairness:
    """A layer around the handler table."""

    def __init__(self, clock: Clock, shares: Shares | None = None) -> None:
        self._clock = clock
        self._shares = shares or Shares()
        self._places: dict[Hashable, Places] = {}

    def around(self, method: Method, handle: Handle) -> Handle:
        if method.path.endswith(_ALWAYS):
            return handle
        service, all_places = method.service, self._places
        # A method without a name has places of its own: many logging modules must not keep
        # anybody from asking for the machine's status.
        name_of = name_reader(method)

        async def limited(stream: Stream) -> None:
            name = name_of(stream.request)
            key = (service, name) if name else method.path
            places = all_places.get(key)
            if places is None:
                places = all_places[key] = Places(self._shares)
            client = stream.peer
            try:
                if not places.take(client):
                    await self._wait(places, client, name or method.path)
                try:
                    await handle(stream)
                finally:
                    places.give_back(client)
            finally:
                if places.idle:
                    all_places.pop(key, None)

        return limited

    async def _wait(self, places: Places, client: str, what: str) -> None:
        turn = places.queue(client)
        if turn is None:
            raise TooManyCalls(
                f"{what} has {self._shares.waiting} calls of yours waiting; "
                "wait for some of them to end"
            )
        try:
            await self._clock.wait({turn}, self._shares.patience)
        except asyncio.CancelledError:
            # The turn may have come just then.
            if places.leave_queue(client, turn):
                places.give_back(client)
            raise
        if not places.leave_queue(client, turn):
            raise TooManyCalls(
                f"{what} has {places.total} calls in flight, {places.held_by(client)} of them "
                "yours; wait for some of them to end"
            )


def name_reader(method: Method) -> Callable[[Any], str | None]:
    """How to read the name of the resource in a request. Where a client sends several messages,
    it is known only after the first."""
    if method.foreign or method.cardinality.client_streaming:
        return lambda _: None
    if method.request is None:
        return name_in
    field = name_field(method.request.DESCRIPTOR)
    return operator.attrgetter(field) if field is not None else lambda _: None


@dataclass(slots=True)
class Places:
    """Pure: who has the places of one resource, and who is next."""

    shares: Shares
    total: int = 0
    held: dict[str, int] = field(default_factory=dict)
    queues: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    """In the order of their turn."""

    @property
    def idle(self) -> bool:
        return not self.total and not self.queues

    def held_by(self, client: str) -> int:
        return self.held.get(client, 0)

    def take(self, client: str) -> bool:
        if client in self.queues or not self._may_take(client):
            return False
        self._hold(client)
        return True

    def give_back(self, client: str) -> None:
        self.total -= 1
        left = self.held[client] - 1
        if left:
            self.held[client] = left
        else:
            del self.held[client]
        if self.queues:
            self._hand_out()

    def queue(self, client: str) -> asyncio.Future[None] | None:
        """None when the client has too many waiting already."""
        queue = self.queues.setdefault(client, deque())
        if len(queue) >= self.shares.waiting:
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        return turn

    def leave_queue(self, client: str, turn: asyncio.Future[None]) -> bool:
        """Whether its turn had come: then it has a place, and must give it back."""
        if turn.done():
            return True
        self.queues[client].remove(turn)
        if not self.queues[client]:
            del self.queues[client]
        return False

    def _may_take(self, client: str) -> bool:
        """Its equal share, counted with one client more: whoever comes next finds a place."""
        if self.total >= self.shares.running:
            return False
        clients = len(self.held) + (client not in self.held)
        return self.held_by(client) < max(1, self.shares.running // (clients + 1))

    def _hold(self, client: str) -> None:
        self.total += 1
        self.held[client] = self.held.get(client, 0) + 1

    def _hand_out(self) -> None:
        """Of a single place, mostly; when a client is gone, the shares of all others grow."""
        while (client := self._next()) is not None:
            queue = self.queues.pop(client)
            queue.popleft().set_result(None)
            self._hold(client)
            if queue:
                self.queues[client] = queue

    def _next(self) -> str | None:
        return next((client for client in self.queues if self._may_take(client)), None)
