"""A fake world state store whose world changes by itself."""

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
from cogwork.drivers.world_state_store.world import SimulatedWorld, Transforms, diff_transforms
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeWorldStateStore(WorldStateStore):
    """A fake world state store.

    The world changes in discrete steps, so all calls between two steps agree. Changes are not
    queued: a slow client gets the difference since its last read.
    """

    def __init__(
        self, name: ResourceName, attributes: FakeWorldStateStoreAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._world = SimulatedWorld(str(name), attributes)
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
        return list(self._transforms_at(self._current_step()))

    async def get_transform(self, uuid: bytes, **_: Any) -> Transform:
        if not uuid:
            raise InvalidRequest(f"{self._display_name} needs the uuid of a transform")
        transform = self._transforms_at(self._current_step()).get(uuid)
        if transform is None:
            raise NotFound(
                f"{self._display_name} has no transform {uuid[:32].hex()}: it has disappeared or "
                "never existed; list the UUIDs again"
            )
        return transform

    # The SDK's service needs a generator, although the base class declares another return type.
    async def stream_transform_changes(  # type: ignore[override]
        self, **_: Any
    ) -> AsyncGenerator[StreamTransformChangesResponse, None]:
        """Stream the changes since the start of the call.

        A client that lists the UUIDs after the start of the stream misses no change.
        """
        self._streams += 1
        try:
            step = self._current_step()
            transforms = self._transforms_at(step)
            while True:
                await self._wait_for_step(step + 1)
                before, step = transforms, self._current_step()
                transforms = self._transforms_at(step)
                for change in diff_transforms(before, transforms):
                    yield change
        finally:
            self._streams -= 1

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "transforms": len(self._transforms_at(self._current_step())),
            "change_streams": self._streams,
        }

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    def _current_step(self) -> int:
        """Return how many times the objects have moved."""
        # Add a tolerance: because of rounding, a timer that fires on time might seem early.
        return math.floor((self._clock.monotonic() - self._since) * self._rate + 1e-6)

    def _transforms_at(self, step: int) -> Transforms:
        return self._world.transforms_at(step / self._rate)

    async def _wait_for_step(self, step: int) -> None:
        while not self._closed.done() and self._current_step() < step:
            remaining = self._since + step / self._rate - self._clock.monotonic()
            await self._clock.wait([self._closed], max(remaining, 0.001))
        if self._closed.done():
            raise Interrupted(f"{self._display_name} was closed")

    @property
    def _display_name(self) -> str:
        return f'world_state_store "{self.name}"'
