"""Event streams: the methods that wait for events, and the limit on such streams.

Event streams may stay open forever and use almost no resources, so they do not count as calls in
flight.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor import MethodDescriptor

from cogwork.core.errors import CogworkError

EVENT_STREAMS: Final = frozenset(
    {
        "/viam.robot.v1.RobotService/StreamStatus",
        "/viam.component.board.v1.BoardService/StreamTicks",
        "/viam.component.inputcontroller.v1.InputControllerService/StreamEvents",
        "/viam.service.worldstatestore.v1.WorldStateStoreService/StreamTransformChanges",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
)
"""The known event streams, by path."""
_PREFIXES: Final = ("Stream", "Watch", "Subscribe", "Listen")
"""Prefixes of method names that mark event streams in other APIs."""


OPENING_TIME: Final = 0.25
"""Seconds after which an event stream counts as open, because some streams send nothing until an
event occurs."""


class TooManyStreams(CogworkError):
    status = "RESOURCE_EXHAUSTED"


def declares_events(method: MethodDescriptor) -> bool:
    """Return whether a method of another program's API looks like an event stream."""
    return (
        method.server_streaming
        and not method.client_streaming
        and method.name.startswith(_PREFIXES)
    )


@dataclass(frozen=True, slots=True)
class EventStreamLimits:
    per_client: int = 512
    total: int = 4096


class EventStreams:
    """The open event streams of all clients. When the limit is reached, a client with fewer streams
    can take places of clients with more."""

    def __init__(self, limits: EventStreamLimits | None = None) -> None:
        self._limits = limits or EventStreamLimits()
        self._streams: dict[str, list[asyncio.Timeout]] = {}
        """One timeout per stream of each client, oldest first. A stream is ended by letting its
        timeout expire."""
        self._count = 0

    @contextlib.asynccontextmanager
    async def hold(self, client: str) -> AsyncIterator[None]:
        """Run the block with a place for an event stream of the client.

        Raise TooManyStreams if there is no place, or later if a client with fewer streams takes the
        place.
        """
        self._make_room(client)
        place = asyncio.timeout(None)
        try:
            async with place:
                self._streams.setdefault(client, []).append(place)
                self._count += 1
                try:
                    yield
                finally:
                    self._remove(client, place)
        except TimeoutError:
            if not place.expired():
                raise
            raise TooManyStreams(
                f"this stream was ended, because there are {self._limits.total} open event streams "
                "and other clients have fewer than you; open fewer"
            ) from None

    def _make_room(self, client: str) -> None:
        own = len(self._streams.get(client, ()))
        if own >= self._limits.per_client:
            raise TooManyStreams(
                f"{own} event streams are open on this connection; end some of them"
            )
        if self._count < self._limits.total:
            return
        largest = max(self._streams, key=lambda each: len(self._streams[each]))
        if len(self._streams[largest]) <= own + 1:
            raise TooManyStreams(
                f"all {self._count} event streams are in use, and no other client has more than "
                "its fair share; try again later"
            )
        newest = self._streams[largest][-1]
        self._remove(largest, newest)
        newest.reschedule(asyncio.get_running_loop().time())

    def _remove(self, client: str, place: asyncio.Timeout) -> None:
        """Free a place, unless another client has already taken it."""
        own = self._streams.get(client, [])
        if place in own:
            own.remove(place)
            self._count -= 1
            if not own:
                del self._streams[client]
