"""A SLAM service that knows its room from the start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from viam.proto.common import Pose
from viam.proto.service.slam import MappingMode
from viam.services.slam import SLAM

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Unsupported
from cogwork.core.workers import Workers
from cogwork.drivers.base.tracked import Tracked
from cogwork.drivers.slam.attributes import FakeSlamAttributes
from cogwork.drivers.slam.room import Room, pose_of, pose_on
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named
from cogwork.resource.poses import to_message
from cogwork.spatial.pose import Pose as Place

CHUNK = 1 << 20
"""Bytes of a map that are sent at a time."""


class FakeSlam(SLAM):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeSlamAttributes,
        clock: Clock,
        room: Room,
        cloud: bytes,
        base: Tracked | None = None,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._since = clock.monotonic()
        self._way = room.way(attributes.speed_mm_per_sec or 1.0)
        self._cloud = cloud
        self._base = base

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeSlamAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeSlam:
        base = _followed(name, attributes, dependencies)
        room = Room(
            attributes.room_width_mm,
            attributes.room_depth_mm,
            attributes.room_height_mm,
            attributes.resolution_mm,
        )
        thread = Workers(f"slam-{name.name}")
        try:
            cloud = await thread.run(room.cloud)
        finally:
            thread.close()
        return cls(name, attributes, clock or SystemClock(), room, cloud, base)

    async def get_position(self, **_: Any) -> Pose:
        return to_message(await self._place())

    async def get_point_cloud_map(self, return_edited_map: bool = False, **_: Any) -> list[bytes]:
        """Nobody has edited it: it is the same either way."""
        del return_edited_map
        return _chunks(self._cloud)

    async def get_internal_state(self, **_: Any) -> list[bytes]:
        """What it would go on from: the room, and where it was left."""
        x, y, _z = (await self._place()).point
        state = {"room": self._attributes.model_dump(), "position_mm": [x, y]}
        return _chunks(json.dumps(state).encode())

    async def get_properties(self, **_: Any) -> SLAM.Properties:
        return SLAM.Properties(
            cloud_slam=False,
            mapping_mode=MappingMode.Value(f"MAPPING_MODE_{self._attributes.mapping_mode.upper()}"),
            internal_state_file_type=".json",
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        x, y, _z = (await self._place()).point
        return {"position_mm": [x, y], "map_bytes": len(self._cloud)}

    async def _place(self) -> Place:
        start = pose_on(self._way, 0.0)
        if self._base is not None:
            return start.then(pose_of((await self._base.odometry()).place))
        if not self._attributes.speed_mm_per_sec:
            return start
        return pose_on(self._way, self._clock.monotonic() - self._since)


def _followed(
    name: ResourceName, attributes: FakeSlamAttributes, dependencies: Dependencies
) -> Tracked | None:
    if attributes.base is None:
        return None
    base = named(dependencies, attributes.base)
    if not isinstance(base, Tracked):
        raise Unsupported(
            f'SLAM service "{name.name}" cannot follow base "{attributes.base}", which does not '
            'tell where it is: name a fake base, or leave "base" out'
        )
    return base


def _chunks(data: bytes) -> list[bytes]:
    return [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
