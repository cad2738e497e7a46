"""A DC motor on a motor driver that is connected to pins of a board."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from viam.components.encoder import Encoder
from viam.components.motor import Motor
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.drivers.command_lock import CommandLease, CommandLock
from cogwork.drivers.gpio.direction import bind_direction
from cogwork.drivers.gpio.h_bridge import HBridge
from cogwork.drivers.gpio.pin_link import await_answer
from cogwork.drivers.motor.attributes import GpioMotorAttributes
from cogwork.drivers.motor.position_tracker import PositionReading, PositionTracker
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
from cogwork.resource.model import find_dependency, logger_of

_POLL_INTERVAL = 0.01
"""Minimum seconds between two encoder readings."""
_BRAKING_TIME = 0.1
"""Seconds before the end of a move at which the motor starts to slow down."""
_MIN_SPEED_FRACTION = 0.1
"""Fraction of the requested speed below which the motor does not slow down."""
_STALL_TIMEOUT = 3.0
"""Minimum seconds without a tick after which the motor counts as stalled."""
_STALL_TICKS = 3
"""Number of ticks that must be overdue before a slow motor counts as stalled."""
_WRONG_WAY_LIMIT = 0.25
"""A motor that is this many revolutions behind its start counts as turning the wrong way."""
_SPEED_MARGIN = 2.0
"""Factor by which the motor may turn faster than `max_rpm`, which is approximate."""


class MotorStalled(CogworkError):
    """A motor has power, but does not reach its goal."""

    status = "FAILED_PRECONDITION"


class GpioMotor(NoGeometry, Motor):
    """A GPIO motor. A newer command preempts a running move, which then fails with Interrupted."""

    def __init__(
        self,
        name: ResourceName,
        attributes: GpioMotorAttributes,
        bridge: HBridge,
        encoder: Encoder | None,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._bridge = bridge
        # Without the ticks per revolution, the encoder cannot measure the position.
        self._encoder = encoder if attributes.ticks_per_rotation else None
        self._clock = clock
        self._zero = 0.0
        self._direction = 1
        # Each poll is followed by setting the power, which waits for the end of a PWM pulse.
        # Polling more often than pulses end would queue writes.
        self._poll_interval = max(
            _POLL_INTERVAL, 2 / attributes.pwm_freq if attributes.pwm_freq else 0.0
        )
        self._display_name = f'motor "{self.name}"'
        self._command_lock = CommandLock(self._display_name)
        self._pin_lock = asyncio.Lock()
        bind_direction(encoder, lambda: self._direction)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioMotorAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioMotor:
        board = find_dependency(dependencies, attributes.board)
        encoder = find_dependency(dependencies, attributes.encoder) if attributes.encoder else None
        bridge = await HBridge.connect(board, attributes.pins, attributes.pwm_freq)
        return cls(name, attributes, bridge, encoder, clock or SystemClock())

    async def set_power(self, power: float, **_: Any) -> None:
        check_power(self._display_name, power)
        await self._spin("set_power", power)

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        maximum = self._require_max_rpm("set_rpm")
        check_speed(self._display_name, rpm, maximum)
        await self._spin("set_rpm", rpm / maximum)

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        distance = parse_go_for(
            self._display_name, rpm, revolutions, self._require_max_rpm("go_for")
        )
        async with self._exclusive_command("go_for") as lease:
            if self._encoder is None:
                await self._go_timed(lease, math.copysign(rpm, distance), abs(distance))
            else:
                tracker = await self._start_tracking(lease)
                await self._drive_to(lease, tracker, tracker.position + distance, abs(rpm))

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        self._check_encoder("go_to")
        check_go_to(self._display_name, rpm, position_revolutions, self._require_max_rpm("go_to"))
        async with self._exclusive_command("go_to") as lease:
            tracker = await self._start_tracking(lease)
            await self._drive_to(lease, tracker, position_revolutions + self._zero, abs(rpm))

    async def stop(self, **_: Any) -> None:
        await self._spin("stop", 0.0)

    async def close(self) -> None:
        await self._spin("close", 0.0)

    def emergency_stop(self) -> None:
        self._bridge.emergency_stop()

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        self._check_encoder("reset_zero_position")
        check_offset(self._display_name, offset)
        self._zero = await self._read_revolutions() + offset

    async def get_position(self, **_: Any) -> float:
        self._check_encoder("get_position")
        return await self._read_position()

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=self._encoder is not None)

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        power = self._bridge.power
        power = -power if self._attributes.dir_flip else power
        return power != 0, power

    async def is_moving(self) -> bool:
        return self._bridge.power != 0

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        powered, power = await self.is_powered()
        status = {"is_powered": powered, "is_moving": powered, "power": power}
        has_position = self._encoder is not None
        return {**status, "position": await self._read_position()} if has_position else status

    async def _spin(self, command: str, power: float) -> None:
        async with self._exclusive_command(command) as lease:
            await self._drive(lease, power)

    @asynccontextmanager
    async def _exclusive_command(self, command: str) -> AsyncIterator[CommandLease]:
        """Preempt the running command; stop the motor if this command fails."""
        lease = self._command_lock.acquire(command)
        try:
            yield lease
            lease.raise_if_revoked()
        except BaseException:
            # If the requested power is 0, all pins have already been set to rest.
            if not lease.is_revoked and self._bridge.requested_power:
                await self._try_stop(lease)
            raise

    async def _try_stop(self, lease: CommandLease) -> None:
        """Stop the motor after a failure: nothing else would end the motion."""
        try:
            await self._drive(lease, 0.0)
        except Exception:
            self.logger.exception(
                "the motor could not be stopped after a failure and may still be turning"
            )

    async def _go_timed(self, lease: CommandLease, rpm: float, revolutions: float) -> None:
        """Turn without an encoder, for the time that the revolutions take.

        The time is computed from the power after `min_power_pct` and `max_power_pct` are applied.
        """
        power = rpm / self._attributes.max_rpm
        await self._drive(lease, power)
        await lease.wait(self._clock, revolutions / self._rpm_at_power(power) * 60)
        await self._drive(lease, 0.0)

    async def _start_tracking(self, lease: CommandLease) -> PositionTracker:
        fastest = self._attributes.max_rpm / 60 * _SPEED_MARGIN
        return PositionTracker(
            await self._take_reading(lease), fastest, 1 / self._attributes.ticks_per_rotation
        )

    async def _take_reading(self, lease: CommandLease) -> PositionReading:
        asked_at = self._clock.monotonic()
        revolutions = await lease.run(self._read_revolutions())
        return PositionReading(revolutions, asked_at, self._clock.monotonic())

    async def _drive_to(
        self, lease: CommandLease, tracker: PositionTracker, end: float, rpm: float
    ) -> None:
        """Turn until the encoder reports the goal."""
        start_position = last_position = tracker.position
        direction = math.copysign(1.0, end - start_position)
        last_change = self._clock.monotonic()
        while (end - tracker.position) * direction > 0:
            power = (
                _approach_speed(abs(end - tracker.position), rpm)
                * direction
                / self._attributes.max_rpm
            )
            await self._drive(lease, power)
            await lease.wait(self._clock, self._poll_interval)
            tracker.add(await self._take_reading(lease))
            if (start_position - tracker.position) * direction > _WRONG_WAY_LIMIT:
                raise MotorStalled(self._wrong_way_message(lease.command))
            if tracker.position != last_position:
                last_position, last_change = tracker.position, self._clock.monotonic()
            elif self._clock.monotonic() - last_change >= (timeout := self._stall_timeout(power)):
                raise MotorStalled(self._stall_message(lease.command, timeout))
        await self._drive(lease, 0.0)

    def _stall_timeout(self, power: float) -> float:
        """Return the seconds without a tick after which the motor counts as stalled."""
        tick = 60 / (self._rpm_at_power(power) * self._attributes.ticks_per_rotation)
        return max(_STALL_TIMEOUT, _STALL_TICKS * tick)

    def _stall_message(self, command: str, seconds: float) -> str:
        return (
            f"{self._display_name} did not finish {command}: its encoder reported no motion for "
            f'{seconds:g} s; check whether it is blocked, raise "min_power_pct", or check the '
            "encoder's wiring"
        )

    def _wrong_way_message(self, command: str) -> str:
        return (
            f"{self._display_name} did not finish {command}: its encoder counts in the wrong "
            'direction; swap the encoder\'s pins, or change "dir_flip"'
        )

    async def _drive(self, lease: CommandLease, power: float) -> None:
        """Wait for the pins, then set the power. Raise Interrupted if preempted meanwhile."""
        async with self._pin_lock:
            lease.raise_if_revoked()
            self._direction = int(math.copysign(1, power)) if power else self._direction
            power = self._clamp_power(power)
            await self._bridge.drive(-power if self._attributes.dir_flip else power)

    def _clamp_power(self, power: float) -> float:
        if power == 0:
            return 0.0
        minimum, maximum = self._attributes.min_power_pct, self._attributes.max_power_pct
        return math.copysign(min(max(abs(power), minimum), maximum), power)

    def _rpm_at_power(self, power: float) -> float:
        """Return the absolute revolutions per minute at a requested power."""
        return abs(self._clamp_power(power)) * self._attributes.max_rpm

    async def _read_position(self) -> float:
        return await self._read_revolutions() - self._zero

    async def _read_revolutions(self) -> float:
        """Return the position that the encoder reports, in revolutions."""
        assert self._encoder is not None
        request = self._encoder.get_position(PositionType.POSITION_TYPE_TICKS_COUNT)
        ticks, _ = await await_answer(f'encoder "{self._encoder.name}"', request)
        return ticks / self._attributes.ticks_per_rotation

    def _require_max_rpm(self, command: str) -> float:
        """Return the maximum speed, or fail if it is unknown."""
        if not self._attributes.max_rpm:
            raise Unsupported(
                f"{self._display_name} does not support {command}, because its speed is unknown: "
                'set "max_rpm"'
            )
        return self._attributes.max_rpm

    def _check_encoder(self, command: str) -> None:
        if self._encoder is None:
            raise Unsupported(
                f"{self._display_name} does not support {command}, because its position is "
                'unknown: configure an "encoder" and "ticks_per_rotation"'
            )


def _approach_speed(revolutions: float, rpm: float) -> float:
    """Return the speed in rpm, which decreases shortly before the end."""
    braking = rpm / 60 * _BRAKING_TIME
    return rpm * min(1.0, max(revolutions / braking, _MIN_SPEED_FRACTION))
