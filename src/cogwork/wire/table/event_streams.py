"""Streams that wait for events: which methods are such, and how many of them may be open.

They may stay open forever and use next to nothing, so they do not count as calls in flight.
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
"""Those that this server knows, by path."""
_PREFIXES: Final = ("Stream", "Watch", "Subscribe", "Listen")
"""How the names of others begin."""


OPENING_TIME: Final = 0.25
"""Seconds after which a stream of events counts as open. Some say nothing until an event occurs."""


class TooManyStreams(CogworkError):
    status = "RESOURCE_EXHAUSTED"


def declares_events(method: MethodDescriptor) -> bool:
    """Return whether a method of another program's API looks like a stream of events."""
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
    """The open streams of all clients, which share the places equally when all are taken."""

    def __init__(self, limits: EventStreamLimits | None = None) -> None:
        self._limits = limits or EventStreamLimits()
        self._streams: dict[str, list[asyncio.Timeout]] = {}
        """The streams of each client, oldest first. The end of its time ends a stream."""
        self._count = 0

    @contextlib.asynccontextmanager
    async def hold(self, client: str) -> AsyncIterator[None]:
        """Run the block with a place for a stream of the client.

        Raise TooManyStreams if there is none, or when another client needs it more.
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
                f"ended, because there are {self._limits.total} open event streams and other "
                "clients have fewer than you; open fewer"
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
                f"there are {self._count} open event streams, and yours are as many as those of "
                "others; try again later"
            )
        newest = self._streams[largest][-1]
        self._remove(largest, newest)
        newest.reschedule(asyncio.get_running_loop().time())

    def _remove(self, client: str, place: asyncio.Timeout) -> None:
        """Give a place back, unless another client has it already."""
        own = self._streams.get(client, [])
        if place in own:
            own.remove(place)
            self._count -= 1
            if not own:
                del self._streams[client]
