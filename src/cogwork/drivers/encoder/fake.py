"""A fake encoder that follows a motor or counts at a fixed rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.encoder import Encoder
from viam.components.motor import Motor
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.encoder.attributes import FakeEncoderAttributes
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of

_TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
_DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES


class FakeEncoder(NoGeometry, Encoder):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeEncoderAttributes,
        motor: Motor | None,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._motor = motor
        self._clock = clock
        self._since = clock.monotonic()
        self._zero = 0.0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeEncoderAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeEncoder:
        motor = (
            find_dependency(dependencies, attributes.motor)
            if attributes.motor is not None
            else None
        )
        return cls(name, attributes, motor, clock or SystemClock())

    async def get_position(
        self, position_type: PositionType.ValueType | None = None, **_: Any
    ) -> tuple[float, PositionType.ValueType]:
        """Return the position, in ticks by default."""
        if position_type == _DEGREES:
            return self._to_degrees(await self._count_ticks()), _DEGREES
        if position_type in (None, PositionType.POSITION_TYPE_UNSPECIFIED, _TICKS):
            return await self._count_ticks(), _TICKS
        raise InvalidRequest(
            f'encoder "{self.name}" does not support position type {position_type}'
        )

    async def reset_position(self, **_: Any) -> None:
        self._zero = await self._raw_count()

    async def get_properties(self, **_: Any) -> Encoder.Properties:
        return Encoder.Properties(ticks_count_supported=True, angle_degrees_supported=True)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        ticks = await self._count_ticks()
        return {"ticks": ticks, "degrees": self._to_degrees(ticks)}

    async def _count_ticks(self) -> float:
        """Return whole ticks: an encoder cannot measure fractions."""
        return float(round(await self._raw_count() - self._zero))

    async def _raw_count(self) -> float:
        if self._motor is not None:
            return await self._motor.get_position() * self._attributes.ticks_per_revolution
        return (self._clock.monotonic() - self._since) * self._attributes.rate

    def _to_degrees(self, ticks: float) -> float:
        """Return the angle from 0 to less than 360."""
        revolution = self._attributes.ticks_per_revolution
        return ticks % revolution / revolution * 360
