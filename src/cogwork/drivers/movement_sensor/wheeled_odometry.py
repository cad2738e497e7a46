"""A movement sensor that works out from the turns of its wheels where a base is."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from viam.components.base import Base
from viam.components.motor import Motor
from viam.components.movement_sensor import MovementSensor, Vector3

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.drivers.base.drive import REST, Place, Speed
from cogwork.drivers.movement_sensor.attributes import WheeledOdometryAttributes
from cogwork.drivers.movement_sensor.motion import Motion
from cogwork.drivers.movement_sensor.motion_sensor import MotionSensor
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named
from cogwork.spatial.earth import Spot

_ANSWERED_WITHIN = 5.0


class LostTrack(CogworkError):
    """The motors do not say how far they have turned."""

    status = "UNAVAILABLE"


class Wheels(NamedTuple):
    """How far they have turned, in revolutions, at a moment in seconds."""

    left: float
    right: float
    moment: float


class WheeledOdometry(MotionSensor):
    def __init__(
        self,
        name: ResourceName,
        attributes: WheeledOdometryAttributes,
        sides: tuple[Sequence[Motor], Sequence[Motor]],
        properties: Base.Properties,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._sides = sides
        self._properties = properties
        self._clock = clock
        self._place = Place()
        self._speed = REST
        self._seen: Wheels | None = None
        self._trouble: str | None = None
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: WheeledOdometryAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> WheeledOdometry:
        left = [named(dependencies, each) for each in attributes.left_motors]
        right = [named(dependencies, each) for each in attributes.right_motors]
        for motor in (*left, *right):
            await _check_reports(motor)
        properties = await named(dependencies, attributes.base).get_properties()
        _check_measures(attributes.base, properties)
        return cls(name, attributes, (left, right), properties, clock or SystemClock())

    async def motion(self) -> Motion:
        if self._trouble is not None:
            raise LostTrack(f'movement sensor "{self.name}" lost track: {self._trouble}')
        its = self._attributes
        origin = Spot(its.origin.latitude, its.origin.longitude)
        return Motion.of(self._place, self._speed, origin, its.compass_heading, 0.0)

    async def get_linear_acceleration(self, **_: Any) -> Vector3:
        raise Unsupported(f'movement sensor "{self.name}" does not measure acceleration')

    async def get_properties(self, **_: Any) -> MovementSensor.Properties:
        properties = await super().get_properties()
        properties.linear_acceleration_supported = False
        return properties

    async def get_accuracy(self, **_: Any) -> MovementSensor.Accuracy:
        """Nobody knows how much the wheels have slipped."""
        return MovementSensor.Accuracy()

    async def get_readings(self, **_: Any) -> dict[str, Any]:
        readings = dict(await super().get_readings())
        del readings["linear_acceleration"]
        return readings

    async def close(self) -> None:
        self._watching.cancel()
        await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_ANSWERED_WITHIN):
                    wheels = await self._look()
            except Exception as error:
                self._miss(error)
            else:
                self._trouble = None
                self._follow(wheels)
            await self._clock.sleep(self._attributes.time_interval_msec / 1000)

    async def _look(self) -> Wheels:
        left, right = self._sides
        asking = (motor.get_position() for motor in (*left, *right))
        turned = [_told(each) for each in await asyncio.gather(*asking, return_exceptions=True)]
        on_left, on_right = turned[: len(left)], turned[len(left) :]
        return Wheels(
            statistics.fmean(on_left), statistics.fmean(on_right), self._clock.monotonic()
        )

    def _follow(self, wheels: Wheels) -> None:
        """Along the arc since the last look; the first one only shows where the motors stand."""
        before, self._seen = self._seen, wheels
        if before is None or wheels.moment <= before.moment:
            return
        around = self._properties.wheel_circumference_meters * 1000
        left, right = (wheels.left - before.left) * around, (wheels.right - before.right) * around
        distance = (left + right) / 2
        turn = math.degrees((right - left) / (self._properties.width_meters * 1000))
        seconds = wheels.moment - before.moment
        self._place = self._place.along(distance, turn)
        self._speed = Speed(distance / seconds, turn / seconds)

    def _miss(self, error: Exception) -> None:
        if self._trouble is None:
            self.logger.warning("the motors do not say how far they have turned: %s", error)
        self._trouble = str(error) or f"no motor answered within {_ANSWERED_WITHIN:g} s"


def _told(answer: float | BaseException) -> float:
    """Only when all have answered, so that nobody is still asked."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


async def _check_reports(motor: Motor) -> None:
    if not (await motor.get_properties()).position_reporting:
        raise Unsupported(
            f'motor "{motor.name}" does not report its position: odometry needs an encoder on it'
        )


def _check_measures(base: str, properties: Base.Properties) -> None:
    if not (properties.width_meters > 0 and properties.wheel_circumference_meters > 0):
        raise Unsupported(
            f'base "{base}" does not tell how wide it is and how large its wheels are: '
            "odometry needs both"
        )
