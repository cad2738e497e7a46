"""A SLAM service that knows its room from the start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from viam.proto.common import Pose
from viam.proto.service.slam import MappingMode
from viam.services.slam import SLAM

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.workers import Workers
from cogwork.drivers.slam.attributes import FakeSlamAttributes
from cogwork.drivers.slam.room import Room, pose_on
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of
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
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._since = clock.monotonic()
        self._way = room.way(attributes.speed_mm_per_sec or 1.0)
        self._cloud = cloud

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeSlamAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeSlam:
        del dependencies
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
        return cls(name, attributes, clock or SystemClock(), room, cloud)

    async def get_position(self, **_: Any) -> Pose:
        return to_message(self._place())

    async def get_point_cloud_map(self, return_edited_map: bool = False, **_: Any) -> list[bytes]:
        """Nobody has edited it: it is the same either way."""
        del return_edited_map
        return _chunks(self._cloud)

    async def get_internal_state(self, **_: Any) -> list[bytes]:
        """What it would go on from: the room, and where it was left."""
        x, y, _z = self._place().point
        state = {"room": self._attributes.model_dump(), "position_mm": [x, y]}
        return _chunks(json.dumps(state).encode())

    async def get_properties(self, **_: Any) -> SLAM.Properties:
        return SLAM.Properties(
            cloud_slam=False,
            mapping_mode=MappingMode.Value(f"MAPPING_MODE_{self._attributes.mapping_mode.upper()}"),
            internal_state_file_type=".json",
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        x, y, _z = self._place().point
        return {"position_mm": [x, y], "map_bytes": len(self._cloud)}

    def _place(self) -> Place:
        moves = self._attributes.speed_mm_per_sec > 0
        return pose_on(self._way, self._clock.monotonic() - self._since if moves else 0.0)


def _chunks(data: bytes) -> list[bytes]:
    return [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
