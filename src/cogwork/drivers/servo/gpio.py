"""A hobby servo whose angle is set by the width of the pulses on a board's pin."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from viam.components.servo import Servo

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gpio.pin_link import PinLink
from cogwork.drivers.mover import Mover, MoverLease
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.servo.attributes import GpioServoAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of

_STEP_INTERVAL = 0.02
"""Minimum seconds between two intermediate angles."""


class GpioServo(NoGeometry, Servo):
    """A GPIO servo. It has no feedback, so it reports the commanded angle.

    A newer command preempts a running move, which then fails with Interrupted.
    """

    def __init__(
        self, name: ResourceName, attributes: GpioServoAttributes, link: PinLink, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._link = link
        self._pin_lock = asyncio.Lock()
        self._last_angle = attributes.start_angle
        """The last angle written to the pin."""
        # Setting an angle waits for the end of a pulse, so more frequent steps would queue writes.
        self._step_interval = max(_STEP_INTERVAL, 2 / attributes.frequency_hz)
        self._mover = Mover(f'servo "{name.name}"', (attributes.start_angle,), clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioServoAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioServo:
        link = await PinLink.connect(
            find_dependency(dependencies, attributes.board), attributes.pin
        )
        await link.set_pwm_frequency(attributes.frequency_hz)
        servo = cls(name, attributes, link, clock or SystemClock())
        await servo.stop()
        return servo

    async def move(self, angle: int, **_: Any) -> None:
        minimum, maximum = self._attributes.min_angle_deg, self._attributes.max_angle_deg
        if not minimum <= angle <= maximum:
            raise InvalidRequest(
                f'servo "{self.name}" turns from {minimum:g} to {maximum:g} degrees, not to {angle}'
            )
        speed = self._attributes.degrees_per_second or math.inf
        with self._mover.acquire("move") as lease:
            lease.trajectory = lease.trajectory.move_through([(float(angle),)], (speed,), lease.now)
            while (left := lease.trajectory.remaining_seconds(lease.now)) > 0:
                await lease.wait(min(left, self._step_interval))
                await self._write_angle(lease)
            await lease.wait_for_arrival()
            await self._write_angle(lease)

    async def get_position(self, **_: Any) -> int:
        """Return whole degrees, the only unit of the API."""
        return round(self._angle)

    async def stop(self, **_: Any) -> None:
        """Hold the current angle."""
        with self._mover.acquire("stop") as lease:
            await self._write_angle(lease)

    async def close(self) -> None:
        """Stop the pulses, which releases the servo."""
        self._mover.halt("close")
        async with self._pin_lock:
            await self._link.set_pwm(0.0)

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "position_deg": self._angle,
            "is_moving": self._mover.is_moving,
            "pulse_us": pulse_width(self._attributes, self._angle),
        }

    async def _write_angle(self, lease: MoverLease) -> None:
        """Wait for the pin, then write the current angle. Raise Interrupted if preempted
        meanwhile."""
        async with self._pin_lock:
            lease.raise_if_revoked()
            (angle,) = self._mover.joints
            width = pulse_width(self._attributes, angle)
            await self._link.set_pwm(width * self._attributes.frequency_hz / 1_000_000)
            self._last_angle = angle
        lease.raise_if_revoked()

    @property
    def _angle(self) -> float:
        if not self._mover.is_moving:
            return self._last_angle
        (angle,) = self._mover.joints
        return angle


def pulse_width(attributes: GpioServoAttributes, angle: float) -> float:
    """Return the pulse width in microseconds."""
    minimum, maximum = attributes.min_angle_deg, attributes.max_angle_deg
    fraction = (angle - minimum) / (maximum - minimum)
    return attributes.min_width_us + fraction * (attributes.max_width_us - attributes.min_width_us)
