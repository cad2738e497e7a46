"""A world state store of a world that changes by itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from viam.proto.common import Transform
from viam.proto.service.worldstatestore import StreamTransformChangesResponse
from viam.services.worldstatestore import WorldStateStore

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted, InvalidRequest, NotFound
from cogwork.drivers.world_state_store.attributes import FakeWorldStateStoreAttributes
from cogwork.drivers.world_state_store.world import Things, World, changes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeWorldStateStore(WorldStateStore):
    """Between two moves nothing changes, whoever asks in whichever way.

    No changes wait for anybody: who reads slowly gets what changed since the last time.
    """

    def __init__(
        self, name: ResourceName, attributes: FakeWorldStateStoreAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._world = World(str(name), attributes)
        self._rate = attributes.update_rate_hz
        self._clock = clock
        self._since = clock.monotonic()
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeWorldStateStoreAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeWorldStateStore:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def list_uuids(self, **_: Any) -> list[bytes]:
        return list(self._things(self._move()))

    async def get_transform(self, uuid: bytes, **_: Any) -> Transform:
        if not uuid:
            raise InvalidRequest(f"{self._called} needs the uuid of a transform")
        thing = self._things(self._move()).get(uuid)
        if thing is None:
            raise NotFound(
                f"{self._called} has no transform {uuid[:32].hex()}: it has vanished, or never "
                "was; ask for the UUIDs again"
            )
        return thing

    # A generator, as the SDK's service wants it; its base class says something else.
    async def stream_transform_changes(  # type: ignore[override]
        self, **_: Any
    ) -> AsyncGenerator[StreamTransformChangesResponse, None]:
        """From the call on: who lists the UUIDs after it has begun misses nothing."""
        self._streams += 1
        try:
            move = self._move()
            things = self._things(move)
            while True:
                await self._passed(move + 1)
                before, move = things, self._move()
                things = self._things(move)
                for change in changes(before, things):
                    yield change
        finally:
            self._streams -= 1

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"transforms": len(self._things(self._move())), "change_streams": self._streams}

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    def _move(self) -> int:
        """How often the things have moved."""
        # A hair more, or a timer that rings at the moment itself would be too early.
        return math.floor((self._clock.monotonic() - self._since) * self._rate + 1e-6)

    def _things(self, move: int) -> Things:
        return self._world.things(move / self._rate)

    async def _passed(self, move: int) -> None:
        while not self._closed.done() and self._move() < move:
            left = self._since + move / self._rate - self._clock.monotonic()
            await self._clock.wait([self._closed], max(left, 0.001))
        if self._closed.done():
            raise Interrupted(f"{self._called} was closed")

    @property
    def _called(self) -> str:
        return f'world_state_store "{self.name}"'
