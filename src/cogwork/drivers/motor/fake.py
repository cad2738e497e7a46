"""A motor that turns in time, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from viam.components.motor import Motor

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Unsupported
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.motion import Motion
from cogwork.drivers.motor.orders import (
    check_go_to,
    check_offset,
    check_power,
    check_speed,
    read_go_for,
)
from cogwork.drivers.shapeless import Shapeless
from cogwork.drivers.turns import Turns
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeMotor(Shapeless, Motor):
    """The newest command has the motor; an older move that it ends fails and says so."""

    def __init__(self, name: ResourceName, attributes: FakeMotorAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._called = f'motor "{self.name}"'
        self._turns = Turns(self._called)
        self._motion = Motion(start=0.0, since=clock.monotonic())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeMotorAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeMotor:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def set_power(self, power: float, **_: Any) -> None:
        check_power(self._called, power)
        self._spin("set_power", power * self._attributes.max_rpm)

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        check_speed(self._called, rpm, self._attributes.max_rpm)
        self._spin("set_rpm", rpm)

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        turns = read_go_for(self._called, rpm, revolutions, self._attributes.max_rpm)
        await self._go("go_for", self._position() + turns, rpm)

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        self._check_reporting("go_to")
        check_go_to(self._called, rpm, position_revolutions, self._attributes.max_rpm)
        await self._go("go_to", position_revolutions, rpm)

    async def stop(self, **_: Any) -> None:
        self._spin("stop", 0.0)

    async def close(self) -> None:
        self._spin("close", 0.0)

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        self._check_reporting("reset_zero_position")
        check_offset(self._called, offset)
        self._motion = self._motion.zeroed(offset, self._clock.monotonic())

    async def get_position(self, **_: Any) -> float:
        self._check_reporting("get_position")
        return self._position()

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=self._attributes.position_reporting)

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        power = self._speed() / self._attributes.max_rpm
        return power != 0, power

    async def is_moving(self) -> bool:
        return self._speed() != 0

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        powered, power = await self.is_powered()
        status = {"is_powered": powered, "is_moving": powered, "power": power, "rpm": self._speed()}
        known = self._attributes.position_reporting
        return {**status, "position": self._position()} if known else status

    def _spin(self, command: str, rpm: float) -> None:
        self._turns.take(command)
        self._motion = self._motion.at(rpm, self._clock.monotonic())

    async def _go(self, command: str, end: float, rpm: float) -> None:
        turn = self._turns.take(command)
        self._motion = self._motion.toward(end, rpm, self._clock.monotonic())
        try:
            await turn.wait(self._clock, self._motion.seconds)
        except asyncio.CancelledError:
            # Whoever asked is gone, and nobody else is watching where it turns to.
            if not turn.is_over:
                await self.stop()
            raise
        self._motion = self._motion.arrived(self._clock.monotonic())

    def _check_reporting(self, command: str) -> None:
        if not self._attributes.position_reporting:
            raise Unsupported(
                f"{self._called} has no {command}, because it does not report its position: "
                'set "position_reporting" to true'
            )

    def _position(self) -> float:
        return self._motion.position(self._clock.monotonic())

    def _speed(self) -> float:
        return self._motion.speed(self._clock.monotonic())
