"""A fake base that simulates motion over time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.base import Base, Vector3
from viam.proto.common import Geometry, Pose, RectangularPrism

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.planar_motion import REST, BasePose, Leg, PlanarMotion, Speed
from cogwork.drivers.base.protocols import Odometry
from cogwork.drivers.base.validation import (
    parse_move_straight,
    parse_set_power,
    parse_set_velocity,
    parse_spin,
)
from cogwork.drivers.command_lock import CommandLock
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeBase(Base):
    """A fake base. A newer command preempts a running move, which then fails with Interrupted."""

    def __init__(self, name: ResourceName, attributes: FakeBaseAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._display_name = f'base "{self.name}"'
        self._command_lock = CommandLock(self._display_name)
        self._motion = PlanarMotion(BasePose(), clock.monotonic())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeBaseAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeBase:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def move_straight(self, distance: int, velocity: float, **_: Any) -> None:
        await self._go("move_straight", parse_move_straight(self._display_name, distance, velocity))

    async def spin(self, angle: float, velocity: float, **_: Any) -> None:
        await self._go("spin", parse_spin(self._display_name, angle, velocity))

    async def set_power(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        power = parse_set_power(self._display_name, linear, angular)
        maximum = self._max_speed
        self._drive_at(
            "set_power", Speed(power.linear * maximum.linear, power.angular * maximum.angular)
        )

    async def set_velocity(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        speed = parse_set_velocity(self._display_name, linear, angular)
        self._check_speed(speed)
        self._drive_at("set_velocity", speed)

    async def stop(self, **_: Any) -> None:
        self._drive_at("stop", REST)

    async def close(self) -> None:
        self._drive_at("close", REST)

    def emergency_stop(self) -> None:
        self._motion = self._motion.continue_at(REST, self._now())

    async def is_moving(self) -> bool:
        return bool(self._motion.speed_at(self._now()))

    async def odometry(self) -> Odometry:
        now = self._now()
        return Odometry(self._motion.pose_at(now), self._motion.speed_at(now))

    async def get_properties(self, **_: Any) -> Base.Properties:
        return Base.Properties(
            width_meters=self._attributes.width_mm / 1000,
            turning_radius_meters=self._attributes.turning_radius_mm / 1000,
            wheel_circumference_meters=self._attributes.wheel_circumference_mm / 1000,
        )

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        attributes = self._attributes
        size = Vector3(x=attributes.width_mm, y=attributes.length_mm, z=attributes.height_mm)
        box = RectangularPrism(dims_mm=size)
        return [Geometry(center=Pose(o_z=1), box=box, label=self.name)]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        odometry = await self.odometry()
        return {
            "is_moving": bool(odometry.speed),
            "x_mm": odometry.pose.x,
            "y_mm": odometry.pose.y,
            "heading_deg": odometry.pose.heading,
            "mm_per_sec": odometry.speed.linear,
            "degs_per_sec": odometry.speed.angular,
        }

    def _drive_at(self, command: str, speed: Speed) -> None:
        """Drive at the given speed until the next command."""
        self._command_lock.acquire(command)
        self._motion = self._motion.continue_at(speed, self._now())

    async def _go(self, command: str, leg: Leg | None) -> None:
        if leg is None:
            self._drive_at(command, REST)
            return
        self._check_speed(leg.speed)
        lease = self._command_lock.acquire(command)
        self._motion = self._motion.continue_along(leg, self._now())
        try:
            await lease.wait(self._clock, leg.seconds)
        except asyncio.CancelledError:
            # Stop if the caller is cancelled: nothing else would end the motion.
            if not lease.is_revoked:
                await self.stop()
            raise
        self._motion = self._motion.stop_at_end(self._now())

    def _check_speed(self, speed: Speed) -> None:
        maximum = self._max_speed
        if abs(speed.linear) > maximum.linear:
            raise InvalidRequest(
                f"{self._display_name} drives at {maximum.linear:g} mm/s at most, not at "
                f"{speed.linear:g}"
            )
        if abs(speed.angular) > maximum.angular:
            raise InvalidRequest(
                f"{self._display_name} turns at {maximum.angular:g} degrees/s at most, "
                f"not at {speed.angular:g}"
            )

    @property
    def _max_speed(self) -> Speed:
        return Speed(self._attributes.max_mm_per_sec, self._attributes.max_degs_per_sec)

    def _now(self) -> float:
        return self._clock.monotonic()
