"""An encoder that counts the turns of a motor, or just counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.encoder import Encoder
from viam.components.motor import Motor
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.encoder.attributes import FakeEncoderAttributes
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named

_TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
_DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES


class FakeEncoder(Shapeless, Encoder):
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
        motor = named(dependencies, attributes.motor) if attributes.motor is not None else None
        return cls(name, attributes, motor, clock or SystemClock())

    async def get_position(
        self, position_type: PositionType.ValueType | None = None, **_: Any
    ) -> tuple[float, PositionType.ValueType]:
        """In ticks, where nothing else is asked for."""
        if position_type == _DEGREES:
            return self._degrees(await self._ticks()), _DEGREES
        if position_type in (None, PositionType.POSITION_TYPE_UNSPECIFIED, _TICKS):
            return await self._ticks(), _TICKS
        raise InvalidRequest(f'encoder "{self.name}" has no position of type {position_type}')

    async def reset_position(self, **_: Any) -> None:
        self._zero = await self._count()

    async def get_properties(self, **_: Any) -> Encoder.Properties:
        return Encoder.Properties(ticks_count_supported=True, angle_degrees_supported=True)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        ticks = await self._ticks()
        return {"ticks": ticks, "degrees": self._degrees(ticks)}

    async def _ticks(self) -> float:
        """Whole ones: there is nothing to see between two."""
        return float(round(await self._count() - self._zero))

    async def _count(self) -> float:
        if self._motor is not None:
            return await self._motor.get_position() * self._attributes.ticks_per_revolution
        return (self._clock.monotonic() - self._since) * self._attributes.rate

    def _degrees(self, ticks: float) -> float:
        """Along the circle, from 0 up to 360."""
        revolution = self._attributes.ticks_per_revolution
        return ticks % revolution / revolution * 360
