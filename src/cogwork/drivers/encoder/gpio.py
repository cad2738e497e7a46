"""The common base of encoders on digital interrupts of a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.board import Board, Tick
from viam.components.encoder import Encoder
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest, Unsupported
from cogwork.drivers.gpio.tick_reader import TickReader
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.resource.model import logger_of

_TICKS = PositionType.POSITION_TYPE_TICKS_COUNT


class GpioEncoder(NoGeometry, Encoder):
    """An encoder that counts ticks since it was built or reset."""

    def __init__(
        self, name: ResourceName, board: Board, interrupts: Sequence[str], clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._ticks = 0
        self._reader = TickReader(board, interrupts, self._on_tick, clock, logger_of(name))

    @property
    def fault(self) -> str | None:
        return self._reader.fault

    async def start(self) -> None:
        await self._reader.start()

    async def get_position(
        self, position_type: PositionType.ValueType | None = None, **_: Any
    ) -> tuple[float, PositionType.ValueType]:
        if position_type == PositionType.POSITION_TYPE_ANGLE_DEGREES:
            raise Unsupported(f'encoder "{self.name}" counts ticks and does not support degrees')
        if position_type not in (None, PositionType.POSITION_TYPE_UNSPECIFIED, _TICKS):
            raise InvalidRequest(
                f'encoder "{self.name}" does not support position type {position_type}'
            )
        self._reader.raise_if_lost()
        return float(self._ticks), _TICKS

    async def reset_position(self, **_: Any) -> None:
        self._ticks = 0

    async def get_properties(self, **_: Any) -> Encoder.Properties:
        return Encoder.Properties(ticks_count_supported=True, angle_degrees_supported=False)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"ticks": self._ticks, "trouble": self._reader.fault or ""}

    async def close(self) -> None:
        await self._reader.aclose()

    def _on_tick(self, tick: Tick) -> None:
        raise NotImplementedError
