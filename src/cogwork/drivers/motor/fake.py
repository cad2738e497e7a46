"""A fake motor that simulates motion over time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from viam.components.motor import Motor

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Unsupported
from cogwork.drivers.command_lock import CommandLock
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.shaft_motion import ShaftMotion
from cogwork.drivers.motor.validation import (
    check_go_to,
    check_offset,
    check_power,
    check_speed,
    parse_go_for,
)
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeMotor(NoGeometry, Motor):
    """A fake motor. A newer command preempts a running move, which then fails with Interrupted."""

    def __init__(self, name: ResourceName, attributes: FakeMotorAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._display_name = f'motor "{self.name}"'
        self._command_lock = CommandLock(self._display_name)
        self._motion = ShaftMotion(start=0.0, since=clock.monotonic())

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
        check_power(self._display_name, power)
        self._spin("set_power", power * self._attributes.max_rpm)

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        check_speed(self._display_name, rpm, self._attributes.max_rpm)
        self._spin("set_rpm", rpm)

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        distance = parse_go_for(self._display_name, rpm, revolutions, self._attributes.max_rpm)
        await self._go("go_for", self._position() + distance, rpm)

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        self._check_position_reporting("go_to")
        check_go_to(self._display_name, rpm, position_revolutions, self._attributes.max_rpm)
        await self._go("go_to", position_revolutions, rpm)

    async def stop(self, **_: Any) -> None:
        self._spin("stop", 0.0)

    async def close(self) -> None:
        self._spin("close", 0.0)

    def emergency_stop(self) -> None:
        self._motion = self._motion.continue_at(0.0, self._clock.monotonic())

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        self._check_position_reporting("reset_zero_position")
        check_offset(self._display_name, offset)
        self._motion = self._motion.shift_zero(offset, self._clock.monotonic())

    async def get_position(self, **_: Any) -> float:
        self._check_position_reporting("get_position")
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
        has_position = self._attributes.position_reporting
        return {**status, "position": self._position()} if has_position else status

    def _spin(self, command: str, rpm: float) -> None:
        self._command_lock.acquire(command)
        self._motion = self._motion.continue_at(rpm, self._clock.monotonic())

    async def _go(self, command: str, end: float, rpm: float) -> None:
        lease = self._command_lock.acquire(command)
        self._motion = self._motion.continue_to(end, rpm, self._clock.monotonic())
        try:
            await lease.wait(self._clock, self._motion.seconds)
        except asyncio.CancelledError:
            # Stop if the caller is cancelled: nothing else would end the motion.
            if not lease.is_revoked:
                await self.stop()
            raise
        self._motion = self._motion.stop_at_end(self._clock.monotonic())

    def _check_position_reporting(self, command: str) -> None:
        if not self._attributes.position_reporting:
            raise Unsupported(
                f"{self._display_name} does not support {command}, because it does not "
                'report its position: set "position_reporting" to true'
            )

    def _position(self) -> float:
        return self._motion.position_at(self._clock.monotonic())

    def _speed(self) -> float:
        return self._motion.speed_at(self._clock.monotonic())
