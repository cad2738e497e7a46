"""A base that drives in time, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.base import Base, Vector3
from viam.proto.common import Geometry, Pose, RectangularPrism

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.drive import REST, Drive, Leg, Place, Speed
from cogwork.drivers.base.orders import read_power, read_spin, read_straight, read_velocity
from cogwork.drivers.base.tracked import Odometry
from cogwork.drivers.turns import Turns
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeBase(Base):
    """The newest command has the base; an older move that it ends fails and says so."""

    def __init__(self, name: ResourceName, attributes: FakeBaseAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._called = f'base "{self.name}"'
        self._turns = Turns(self._called)
        self._drive = Drive(Place(), clock.monotonic())

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
        await self._go("move_straight", read_straight(self._called, distance, velocity))

    async def spin(self, angle: float, velocity: float, **_: Any) -> None:
        await self._go("spin", read_spin(self._called, angle, velocity))

    async def set_power(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        power = read_power(self._called, linear, angular)
        most = self._most
        self._roll("set_power", Speed(power.linear * most.linear, power.angular * most.angular))

    async def set_velocity(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        speed = read_velocity(self._called, linear, angular)
        self._check_speed(speed)
        self._roll("set_velocity", speed)

    async def stop(self, **_: Any) -> None:
        self._roll("stop", REST)

    async def close(self) -> None:
        self._roll("close", REST)

    async def is_moving(self) -> bool:
        return bool(self._drive.velocity(self._now()))

    async def odometry(self) -> Odometry:
        now = self._now()
        return Odometry(self._drive.place(now), self._drive.velocity(now))

    async def get_properties(self, **_: Any) -> Base.Properties:
        return Base.Properties(
            width_meters=self._attributes.width_mm / 1000,
            turning_radius_meters=self._attributes.turning_radius_mm / 1000,
            wheel_circumference_meters=self._attributes.wheel_circumference_mm / 1000,
        )

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        its = self._attributes
        size = Vector3(x=its.width_mm, y=its.length_mm, z=its.height_mm)
        box = RectangularPrism(dims_mm=size)
        return [Geometry(center=Pose(o_z=1), box=box, label=self.name)]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        seen = await self.odometry()
        return {
            "is_moving": bool(seen.speed),
            "x_mm": seen.place.x,
            "y_mm": seen.place.y,
            "heading_deg": seen.place.heading,
            "mm_per_sec": seen.speed.linear,
            "degs_per_sec": seen.speed.angular,
        }

    def _roll(self, command: str, speed: Speed) -> None:
        """Without an end."""
        self._turns.take(command)
        self._drive = self._drive.at(speed, self._now())

    async def _go(self, command: str, leg: Leg | None) -> None:
        if leg is None:
            self._roll(command, REST)
            return
        self._check_speed(leg.speed)
        turn = self._turns.take(command)
        self._drive = self._drive.over(leg, self._now())
        try:
            await turn.wait(self._clock, leg.seconds)
        except asyncio.CancelledError:
            # Whoever asked is gone, and nobody else is watching where it drives.
            if not turn.is_over:
                await self.stop()
            raise
        self._drive = self._drive.arrived(self._now())

    def _check_speed(self, speed: Speed) -> None:
        most = self._most
        if abs(speed.linear) > most.linear:
            raise InvalidRequest(
                f"{self._called} drives at {most.linear:g} mm/s at most, not at {speed.linear:g}"
            )
        if abs(speed.angular) > most.angular:
            raise InvalidRequest(
                f"{self._called} turns at {most.angular:g} degrees/s at most, "
                f"not at {speed.angular:g}"
            )

    @property
    def _most(self) -> Speed:
        return Speed(self._attributes.max_mm_per_sec, self._attributes.max_degs_per_sec)

    def _now(self) -> float:
        return self._clock.monotonic()
