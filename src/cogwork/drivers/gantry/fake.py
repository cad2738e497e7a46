"""A fake gantry that simulates motion over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viam.components.gantry import Gantry
from viam.proto.common import Geometry, KinematicsFileFormat

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gantry.attributes import FakeGantryAttributes
from cogwork.drivers.joint_trajectory import Joints
from cogwork.drivers.mover import Mover
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.messages.pose_proto import geometry_to_proto
from cogwork.resource.model import logger_of
from cogwork.spatial.kinematics import Chain, format_sva, gantry_chain
from cogwork.spatial.pose import Pose

_RAIL_MM = 40.0
"""Thickness of the rails."""


class FakeGantry(Gantry):
    """A fake gantry. A newer command preempts a running move, which then fails with Interrupted."""

    def __init__(self, name: ResourceName, attributes: FakeGantryAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._lengths = tuple(attributes.lengths_mm)
        self._speed = attributes.speed_mm_per_sec
        self._chain = gantry_chain(self._lengths, name=name.name)
        self._home = (0.0,) * len(self._lengths)
        self._mover = Mover(f'gantry "{name.name}"', self._home, clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeGantryAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeGantry:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def move_to_position(
        self, positions: Sequence[float], speeds: Sequence[float], **_: Any
    ) -> None:
        """Move each axis at its own speed; axes do not wait for each other."""
        end = self._check_positions(positions)
        await self._mover.move_independently("move_to_position", end, self._check_speeds(speeds))

    async def home(self, **_: Any) -> bool:
        await self._mover.move_independently("home", self._home, self._check_speeds([]))
        return True

    async def get_position(self, **_: Any) -> list[float]:
        return list(self._mover.joints)

    async def get_lengths(self, **_: Any) -> list[float]:
        return list(self._lengths)

    async def stop(self, **_: Any) -> None:
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")

    def emergency_stop(self) -> None:
        self._mover.emergency_stop()

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_kinematics(self, **_: Any) -> tuple[KinematicsFileFormat.ValueType, bytes]:
        return (
            KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA,
            format_sva(self._chain).encode(),
        )

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        """Return the rails at their current positions; each rail is mounted on the previous one."""
        return list(_rail_geometries(self._chain, self._mover.joints))

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "positions_mm": await self.get_position(),
            "lengths_mm": await self.get_lengths(),
            "is_moving": self._mover.is_moving,
        }

    def _check_positions(self, positions: Sequence[float]) -> Joints:
        self._check_count("positions", positions)
        for number, (position, length) in enumerate(zip(positions, self._lengths, strict=True), 1):
            if not 0 <= position <= length:
                raise InvalidRequest(
                    f"axis {number} of {self._mover.display_name} goes from 0 to {length:g} mm, "
                    f"not to {position:g}"
                )
        return tuple(positions)

    def _check_speeds(self, speeds: Sequence[float]) -> Joints:
        if not speeds:
            return (self._speed,) * len(self._lengths)
        self._check_count("speeds", speeds)
        for number, speed in enumerate(speeds, 1):
            if not 0 < speed <= self._speed:
                raise InvalidRequest(
                    f"axis {number} of {self._mover.display_name} accepts a speed above 0 and at "
                    f"most {self._speed:g} mm per second, not {speed:g}"
                )
        return tuple(speeds)

    def _check_count(self, what: str, values: Sequence[float]) -> None:
        if len(values) != len(self._lengths):
            raise InvalidRequest(
                f"{self._mover.display_name} has {len(self._lengths)} axes and needs "
                f"{len(self._lengths)} {what}, not {len(values)}"
            )


def _rail_geometries(chain: Chain, positions: Joints) -> Iterator[Geometry]:
    carriage = Pose.identity()
    for joint, position in zip(chain.joints, positions, strict=True):
        length = joint.maximum
        sides = [abs(part) * length + (1 - abs(part)) * _RAIL_MM for part in joint.axis]
        middle = carriage.compose(joint.pose(length / 2)).point
        yield geometry_to_proto(
            {"type": "box", **_xyz(sides), "translation": _xyz(middle)}, joint.id
        )
        carriage = carriage.compose(joint.pose(position))


def _xyz(values: Sequence[float]) -> dict[str, float]:
    return dict(zip("xyz", values, strict=True))
