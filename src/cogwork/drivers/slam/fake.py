"""A fake SLAM service with a predefined map of a room."""

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
from cogwork.drivers.base.protocols import HasOdometry
from cogwork.drivers.slam.attributes import FakeSlamAttributes
from cogwork.drivers.slam.room import Room, base_to_map_pose, pose_along
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.messages.pose_proto import pose_to_proto
from cogwork.resource.model import find_dependency, logger_of
from cogwork.spatial.pose import Pose as Place

CHUNK_SIZE = 1 << 20
"""Maximum bytes of a map per message."""


class FakeSlam(SLAM):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeSlamAttributes,
        clock: Clock,
        room: Room,
        cloud: bytes,
        base: HasOdometry | None = None,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._since = clock.monotonic()
        self._loop = room.loop_trajectory(attributes.speed_mm_per_sec or 1.0)
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
        base = _find_base(name, attributes, dependencies)
        room = Room(
            attributes.room_width_mm,
            attributes.room_depth_mm,
            attributes.room_height_mm,
            attributes.resolution_mm,
        )
        thread = Workers(f"slam-{name.name}")
        try:
            cloud = await thread.run(room.point_cloud)
        finally:
            thread.close()
        return cls(name, attributes, clock or SystemClock(), room, cloud, base)

    async def get_position(self, **_: Any) -> Pose:
        return pose_to_proto(await self._current_pose())

    async def get_point_cloud_map(self, return_edited_map: bool = False, **_: Any) -> list[bytes]:
        """Return the map; there is no edited version."""
        del return_edited_map
        return _split_chunks(self._cloud)

    async def get_internal_state(self, **_: Any) -> list[bytes]:
        """Return the room and the current position as JSON."""
        x, y, _z = (await self._current_pose()).point
        state = {"room": self._attributes.model_dump(), "position_mm": [x, y]}
        return _split_chunks(json.dumps(state).encode())

    async def get_properties(self, **_: Any) -> SLAM.Properties:
        return SLAM.Properties(
            cloud_slam=False,
            mapping_mode=MappingMode.Value(f"MAPPING_MODE_{self._attributes.mapping_mode.upper()}"),
            internal_state_file_type=".json",
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        x, y, _z = (await self._current_pose()).point
        return {"position_mm": [x, y], "map_bytes": len(self._cloud)}

    async def _current_pose(self) -> Place:
        start = pose_along(self._loop, 0.0)
        if self._base is not None:
            return start.compose(base_to_map_pose((await self._base.odometry()).pose))
        if not self._attributes.speed_mm_per_sec:
            return start
        return pose_along(self._loop, self._clock.monotonic() - self._since)


def _find_base(
    name: ResourceName, attributes: FakeSlamAttributes, dependencies: Dependencies
) -> HasOdometry | None:
    if attributes.base is None:
        return None
    base = find_dependency(dependencies, attributes.base)
    if not isinstance(base, HasOdometry):
        raise Unsupported(
            f'SLAM service "{name.name}" cannot follow base "{attributes.base}", which does not '
            'report its pose: use a fake base, or remove "base"'
        )
    return base


def _split_chunks(data: bytes) -> list[bytes]:
    return [data[start : start + CHUNK_SIZE] for start in range(0, len(data), CHUNK_SIZE)]
