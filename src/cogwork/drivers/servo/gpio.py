"""A hobby servo, whose angle is the length of the pulses on a pin of a board."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from viam.components.servo import Servo

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gpio.wire import Wire
from cogwork.drivers.mover import Held, Mover
from cogwork.drivers.servo.gpio_attributes import GpioServoAttributes
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named

_STEP = 0.02
"""Seconds between two angles on the way, at least."""


class GpioServo(Shapeless, Servo):
    """What it reports is where it was sent: nothing tells where it really is. The newest command
    has the servo; an older move that it ends fails and says so."""

    def __init__(
        self, name: ResourceName, attributes: GpioServoAttributes, wire: Wire, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._wire = wire
        self._pin = asyncio.Lock()
        self._pointed = attributes.start
        """The angle that the pin was last set to."""
        # An angle takes until the end of a pulse: more of them would queue.
        self._step = max(_STEP, 2 / attributes.frequency_hz)
        self._mover = Mover(f'servo "{name.name}"', (attributes.start,), clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioServoAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioServo:
        wire = await Wire.to(named(dependencies, attributes.board), attributes.pin)
        await wire.pulse_at(attributes.frequency_hz)
        servo = cls(name, attributes, wire, clock or SystemClock())
        await servo.stop()
        return servo

    async def move(self, angle: int, **_: Any) -> None:
        least, most = self._attributes.min_angle_deg, self._attributes.max_angle_deg
        if not least <= angle <= most:
            raise InvalidRequest(
                f'servo "{self.name}" turns from {least:g} to {most:g} degrees, not to {angle}'
            )
        speed = self._attributes.degrees_per_second or math.inf
        with self._mover.hold("move") as held:
            held.course = held.course.through([(float(angle),)], (speed,), held.now)
            while (left := held.course.left(held.now)) > 0:
                await held.wait(min(left, self._step))
                await self._point(held)
            await held.arrive()
            await self._point(held)

    async def get_position(self, **_: Any) -> int:
        """In whole degrees: the API has no others."""
        return round(self._angle)

    async def stop(self, **_: Any) -> None:
        """It holds the angle that it has."""
        with self._mover.hold("stop") as held:
            await self._point(held)

    async def close(self) -> None:
        """Without pulses it lets go."""
        self._mover.halt("close")
        async with self._pin:
            await self._wire.pulse(0.0)

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "position_deg": self._angle,
            "is_moving": self._mover.is_moving,
            "pulse_us": pulse_width(self._attributes, self._angle),
        }

    async def _point(self, held: Held) -> None:
        """One command at a time sets the pin, and none that was overtaken meanwhile."""
        async with self._pin:
            held.check()
            (angle,) = self._mover.joints
            width = pulse_width(self._attributes, angle)
            await self._wire.pulse(width * self._attributes.frequency_hz / 1_000_000)
            self._pointed = angle
        held.check()

    @property
    def _angle(self) -> float:
        if not self._mover.is_moving:
            return self._pointed
        (angle,) = self._mover.joints
        return angle


def pulse_width(attributes: GpioServoAttributes, angle: float) -> float:
    """In microseconds."""
    least, most = attributes.min_angle_deg, attributes.max_angle_deg
    share = (angle - least) / (most - least)
    return attributes.min_width_us + share * (attributes.max_width_us - attributes.min_width_us)
