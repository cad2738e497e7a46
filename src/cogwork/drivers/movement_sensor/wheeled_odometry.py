"""A movement sensor that works out from the turns of its wheels where a base is."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from viam.components.base import Base
from viam.components.motor import Motor
from viam.components.movement_sensor import MovementSensor, Vector3

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.drivers.base.drive import REST, Place, Speed
from cogwork.drivers.base.slipping import Slipping
from cogwork.drivers.motor.travel import Look, Travel
from cogwork.drivers.movement_sensor.attributes import WheeledOdometryAttributes
from cogwork.drivers.movement_sensor.motion import Motion
from cogwork.drivers.movement_sensor.motion_sensor import MotionSensor
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named
from cogwork.spatial.earth import Spot

_ANSWERED_WITHIN = 5.0
_ABSURD = 10.0
"""How many times faster than it is said to be no wheel turns."""


class LostTrack(CogworkError):
    """The motors do not say how far they have turned."""

    status = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Measures:
    """Of a base, in millimetres."""

    around: float
    """How far one turn of its wheels takes it."""
    width: float
    """How far apart its wheels are; as many times farther as they slip when it turns."""


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
        measures: Measures,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._sides = sides
        self._measures = measures
        self._clock = clock
        self._place = Place()
        self._speed = REST
        self._travels: list[Travel] = []
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
        measures = await _measures(attributes.base, named(dependencies, attributes.base))
        return cls(name, attributes, (left, right), measures, clock or SystemClock())

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
                    looks = await self._look()
            except Exception as error:
                self._miss(error)
            else:
                self._trouble = None
                self._follow(self._turned(looks))
            await self._clock.sleep(self._attributes.time_interval_msec / 1000)

    async def _look(self) -> list[Look]:
        left, right = self._sides
        asking = (self._look_at(motor) for motor in (*left, *right))
        return [_told(each) for each in await asyncio.gather(*asking, return_exceptions=True)]

    async def _look_at(self, motor: Motor) -> Look:
        asked = self._clock.monotonic()
        return Look(await motor.get_position(), asked, self._clock.monotonic())

    def _turned(self, looks: Sequence[Look]) -> Wheels:
        """Whoever sets a motor to zero does not move the base."""
        if self._travels:
            for travel, look in zip(self._travels, looks, strict=True):
                travel.add(look)
        else:
            fastest = self._attributes.max_rpm / 60
            self._travels = [Travel(look, fastest, 0.0, fastest * _ABSURD) for look in looks]
        turned = [travel.here for travel in self._travels]
        border = len(self._sides[0])
        return Wheels(
            statistics.fmean(turned[:border]),
            statistics.fmean(turned[border:]),
            self._clock.monotonic(),
        )

    def _follow(self, wheels: Wheels) -> None:
        """Along the arc since the last look; the first one only shows where the motors stand."""
        before, self._seen = self._seen, wheels
        if before is None or wheels.moment <= before.moment:
            return
        around = self._measures.around
        left, right = (wheels.left - before.left) * around, (wheels.right - before.right) * around
        distance = (left + right) / 2
        turn = math.degrees((right - left) / self._measures.width)
        seconds = wheels.moment - before.moment
        self._place = self._place.along(distance, turn)
        self._speed = Speed(distance / seconds, turn / seconds)

    def _miss(self, error: Exception) -> None:
        if self._trouble is None:
            self.logger.warning("the motors do not say how far they have turned: %s", error)
        self._trouble = str(error) or f"no motor answered within {_ANSWERED_WITHIN:g} s"


def _told(answer: Look | BaseException) -> Look:
    """Only when all have answered, so that nobody is still asked."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


async def _check_reports(motor: Motor) -> None:
    if not (await motor.get_properties()).position_reporting:
        raise Unsupported(
            f'motor "{motor.name}" does not report its position: odometry needs an encoder on it'
        )


async def _measures(name: str, base: Base) -> Measures:
    told = await base.get_properties()
    if not (told.width_meters > 0 and told.wheel_circumference_meters > 0):
        raise Unsupported(
            f'base "{name}" does not tell how wide it is and how large its wheels are: '
            "odometry needs both"
        )
    width = base.turning_width_mm if isinstance(base, Slipping) else told.width_meters * 1000
    return Measures(told.wheel_circumference_meters * 1000, width)
