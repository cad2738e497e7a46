"""Wheel odometry: a movement sensor that computes the pose of a base from its wheels."""

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
from cogwork.drivers.base.planar_motion import REST, BasePose, Speed
from cogwork.drivers.base.protocols import HasTurningWidth
from cogwork.drivers.motor.position_tracker import PositionReading, PositionTracker
from cogwork.drivers.movement_sensor.attributes import WheeledOdometryAttributes
from cogwork.drivers.movement_sensor.snapshot import MovementSnapshot
from cogwork.drivers.movement_sensor.snapshot_sensor import SnapshotMovementSensor
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of
from cogwork.spatial.geodesy import GeoCoordinate

_ANSWER_TIMEOUT = 5.0
_IMPOSSIBLE_SPEED_FACTOR = 10.0
"""Factor by which a wheel may turn faster than `max_rpm`, which is approximate. An even faster
change means that the motor's position was set to another value."""


class LostTrack(CogworkError):
    """The motors do not report how far they have turned."""

    status = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class BaseDimensions:
    """Dimensions of a base, in millimeters."""

    wheel_circumference: float
    """Distance per revolution of the wheels."""
    turning_width: float
    """Distance between the wheels of a slip-free base that turns like this one."""


class WheelPositions(NamedTuple):
    """Revolutions of the left and right wheels at a time in seconds."""

    left: float
    right: float
    time: float


class WheeledOdometry(SnapshotMovementSensor):
    def __init__(
        self,
        name: ResourceName,
        attributes: WheeledOdometryAttributes,
        sides: tuple[Sequence[Motor], Sequence[Motor]],
        dimensions: BaseDimensions,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._sides = sides
        self._dimensions = dimensions
        self._clock = clock
        self._pose = BasePose()
        self._speed = REST
        self._trackers: list[PositionTracker] = []
        self._last_positions: WheelPositions | None = None
        self._fault: str | None = None
        self._poll_task = asyncio.create_task(self._poll_motors())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: WheeledOdometryAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> WheeledOdometry:
        left = [find_dependency(dependencies, each) for each in attributes.left_motors]
        right = [find_dependency(dependencies, each) for each in attributes.right_motors]
        for motor in (*left, *right):
            await _check_position_reporting(motor)
        dimensions = await _read_dimensions(
            attributes.base, find_dependency(dependencies, attributes.base)
        )
        return cls(name, attributes, (left, right), dimensions, clock or SystemClock())

    async def take_snapshot(self) -> MovementSnapshot:
        if self._fault is not None:
            raise LostTrack(
                f'movement sensor "{self.name}" lost track of its position: {self._fault}'
            )
        attributes = self._attributes
        origin = GeoCoordinate(attributes.origin.latitude, attributes.origin.longitude)
        return MovementSnapshot.from_base(
            self._pose, self._speed, origin, attributes.compass_heading, 0.0
        )

    async def get_linear_acceleration(self, **_: Any) -> Vector3:
        raise Unsupported(f'movement sensor "{self.name}" does not measure acceleration')

    async def get_properties(self, **_: Any) -> MovementSensor.Properties:
        properties = await super().get_properties()
        properties.linear_acceleration_supported = False
        return properties

    async def get_accuracy(self, **_: Any) -> MovementSensor.Accuracy:
        """Return an empty accuracy: the slip of the wheels is unknown."""
        return MovementSensor.Accuracy()

    async def get_readings(self, **_: Any) -> dict[str, Any]:
        readings = dict(await super().get_readings())
        del readings["linear_acceleration"]
        return readings

    async def close(self) -> None:
        self._poll_task.cancel()
        await asyncio.wait([self._poll_task])

    async def _poll_motors(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_ANSWER_TIMEOUT):
                    readings = await self._read_motors()
            except Exception as error:
                self._report_failure(error)
            else:
                self._fault = None
                self._integrate(self._update_trackers(readings))
            await self._clock.sleep(self._attributes.time_interval_msec / 1000)

    async def _read_motors(self) -> list[PositionReading]:
        left, right = self._sides
        requests = (self._read_motor(motor) for motor in (*left, *right))
        return [_unwrap(each) for each in await asyncio.gather(*requests, return_exceptions=True)]

    async def _read_motor(self, motor: Motor) -> PositionReading:
        asked_at = self._clock.monotonic()
        return PositionReading(await motor.get_position(), asked_at, self._clock.monotonic())

    def _update_trackers(self, readings: Sequence[PositionReading]) -> WheelPositions:
        """Add the readings to the trackers, which detect resets; return the resulting wheel
        positions."""
        if self._trackers:
            for tracker, reading in zip(self._trackers, readings, strict=True):
                tracker.add(reading)
        else:
            fastest = self._attributes.max_rpm / 60
            self._trackers = [
                PositionTracker(reading, fastest, 0.0, fastest * _IMPOSSIBLE_SPEED_FACTOR)
                for reading in readings
            ]
        revolutions = [tracker.position for tracker in self._trackers]
        left_count = len(self._sides[0])
        return WheelPositions(
            statistics.fmean(revolutions[:left_count]),
            statistics.fmean(revolutions[left_count:]),
            self._clock.monotonic(),
        )

    def _integrate(self, wheels: WheelPositions) -> None:
        """Add the arc since the last reading to the pose. The first reading is only the
        reference."""
        before, self._last_positions = self._last_positions, wheels
        if before is None or wheels.time <= before.time:
            return
        circumference = self._dimensions.wheel_circumference
        left, right = (
            (wheels.left - before.left) * circumference,
            (wheels.right - before.right) * circumference,
        )
        distance = (left + right) / 2
        turn = math.degrees((right - left) / self._dimensions.turning_width)
        seconds = wheels.time - before.time
        self._pose = self._pose.move_along_arc(distance, turn)
        self._speed = Speed(distance / seconds, turn / seconds)

    def _report_failure(self, error: Exception) -> None:
        reason = str(error) or f"no answer within {_ANSWER_TIMEOUT:g} s"
        if self._fault is None:
            self.logger.warning("cannot read the positions of the motors: %s; retrying", reason)
        self._fault = reason


def _unwrap(answer: PositionReading | BaseException) -> PositionReading:
    """Return the reading, or raise the error with which the request failed."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


async def _check_position_reporting(motor: Motor) -> None:
    if not (await motor.get_properties()).position_reporting:
        raise Unsupported(
            f'motor "{motor.name}" does not report its position, which odometry needs: use a motor '
            "with an encoder"
        )


async def _read_dimensions(name: str, base: Base) -> BaseDimensions:
    properties = await base.get_properties()
    if not (properties.width_meters > 0 and properties.wheel_circumference_meters > 0):
        raise Unsupported(
            f'base "{name}" does not report its width and wheel circumference: odometry needs both'
        )
    width = (
        base.turning_width_mm
        if isinstance(base, HasTurningWidth)
        else properties.width_meters * 1000
    )
    return BaseDimensions(properties.wheel_circumference_meters * 1000, width)
