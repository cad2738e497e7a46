"""A wheeled base with motors on its left and right side (differential drive)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from viam.components.base import Base, Vector3
from viam.components.motor import Motor

from cogwork.drivers.base.attributes import WheeledBaseAttributes
from cogwork.drivers.base.planar_motion import Leg
from cogwork.drivers.base.validation import (
    parse_move_straight,
    parse_set_power,
    parse_set_velocity,
    parse_spin,
)
from cogwork.drivers.command_lock import CommandLease, CommandLock
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of

MotorCommand = Callable[[Motor, float], Coroutine[Any, Any, None]]
"""A function that commands one motor, with the value for the motor's side."""
SideValues = tuple[float, float]
"""The values for the left and the right side."""

_STOP_TIMEOUT = 5.0


class WheeledBase(NoGeometry, Base):
    """A wheeled base. A newer command or the failure of one motor ends the running command on all
    motors."""

    def __init__(
        self,
        name: ResourceName,
        attributes: WheeledBaseAttributes,
        left: Sequence[Motor],
        right: Sequence[Motor],
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._left = left
        self._right = right
        self._display_name = f'base "{self.name}"'
        self._command_lock = CommandLock(self._display_name)
        self._lock = asyncio.Lock()
        self._at_rest = True

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: WheeledBaseAttributes, dependencies: Dependencies
    ) -> WheeledBase:
        left = [find_dependency(dependencies, each) for each in attributes.left]
        right = [find_dependency(dependencies, each) for each in attributes.right]
        return cls(name, attributes, left, right)

    async def move_straight(self, distance: int, velocity: float, **_: Any) -> None:
        await self._go("move_straight", parse_move_straight(self._display_name, distance, velocity))

    async def spin(self, angle: float, velocity: float, **_: Any) -> None:
        await self._go("spin", parse_spin(self._display_name, angle, velocity))

    async def set_power(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        power = parse_set_power(self._display_name, linear, angular)
        left, right = power.linear - power.angular, power.linear + power.angular
        # Scale the power of both sides by the same factor, so that the base drives the same arc.
        maximum = max(1.0, abs(left), abs(right))
        await self._run_command("set_power", (left / maximum, right / maximum), _set_power)

    async def set_velocity(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        speed = parse_set_velocity(self._display_name, linear, angular)
        left, right = self._wheel_revolutions(speed.linear, speed.angular)
        await self._run_command("set_velocity", (left * 60, right * 60), _set_rpm)

    async def stop(self, **_: Any) -> None:
        """Stop at once, without waiting for an older command to end."""
        await self._stop_motors(self._command_lock.acquire("stop"))

    async def close(self) -> None:
        lease = self._command_lock.acquire("close")
        if not self._at_rest:
            await self._stop_motors(lease)

    async def is_moving(self) -> bool:
        return any([await motor.is_moving() for motor in self._motors])

    @property
    def turning_width_mm(self) -> float:
        return self._attributes.width_mm * self._attributes.spin_slip_factor

    async def get_properties(self, **_: Any) -> Base.Properties:
        return Base.Properties(
            width_meters=self._attributes.width_mm / 1000,
            turning_radius_meters=0.0,
            wheel_circumference_meters=self._attributes.wheel_circumference_mm / 1000,
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        powers = {motor.name: (await motor.is_powered())[1] for motor in self._motors}
        return {"is_moving": await self.is_moving(), "power": powers}

    async def _go(self, command: str, leg: Leg | None) -> None:
        if leg is None:
            await self._run_command(command, (0.0, 0.0), _set_rpm)
            return
        # A leg is straight or a turn in place, so both sides have the same absolute speed.
        rpm = abs(self._wheel_revolutions(leg.speed.linear, leg.speed.angular)[0]) * 60

        async def go_for(motor: Motor, revolutions: float) -> None:
            await motor.go_for(rpm, revolutions)

        await self._run_command(command, self._wheel_revolutions(leg.distance, leg.turn), go_for)

    async def _run_command(
        self, command: str, sides: SideValues, command_motor: MotorCommand
    ) -> None:
        lease = self._command_lock.acquire(command)
        try:
            async with self._lock:
                lease.raise_if_revoked()
                self._at_rest = False
                await lease.run(self._command_motors(lease, sides, command_motor))
        except BaseException:
            if not lease.is_revoked:
                await self._try_stop(lease)
            raise

    async def _command_motors(
        self, lease: CommandLease, sides: SideValues, command_motor: MotorCommand
    ) -> None:
        """Command all motors at once; if one fails, cancel the commands to the others."""
        try:
            async with asyncio.TaskGroup() as group:
                for motors, number in zip((self._left, self._right), sides, strict=True):
                    for motor in motors:
                        group.create_task(_command_motor(lease, command_motor, motor, number))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _stop_motors(self, lease: CommandLease) -> None:
        """Stop all motors, even if some of them fail."""
        stops = (motor.stop() for motor in self._motors)
        for result in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        # The base is not at rest if a newer command has started another motion meanwhile.
        if not lease.is_revoked:
            self._at_rest = True

    async def _try_stop(self, lease: CommandLease) -> None:
        """Stop all motors after a failure; otherwise the motors that still turn would move the
        base."""
        try:
            async with asyncio.timeout(_STOP_TIMEOUT):
                await self._stop_motors(lease)
        except Exception:
            self.logger.exception(
                "the base could not be stopped after a failure and may still be moving"
            )

    def _wheel_revolutions(self, linear: float, angular: float) -> SideValues:
        """Return the wheel revolutions for millimeters forward and degrees to the left."""
        difference = math.radians(angular) * self.turning_width_mm / 2
        circumference = self._attributes.wheel_circumference_mm
        return (linear - difference) / circumference, (linear + difference) / circumference

    @property
    def _motors(self) -> tuple[Motor, ...]:
        return (*self._left, *self._right)


async def _command_motor(
    lease: CommandLease, command_motor: MotorCommand, motor: Motor, number: float
) -> None:
    # Leave the motor alone if a newer command has preempted this one.
    lease.raise_if_revoked()
    await command_motor(motor, number)


async def _set_power(motor: Motor, power: float) -> None:
    await motor.set_power(power)


async def _set_rpm(motor: Motor, rpm: float) -> None:
    if rpm:
        await motor.set_rpm(rpm)
    else:
        await motor.stop()
