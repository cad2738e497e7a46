"""An encoder of two signals, which knows which way it turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.board import Board, Tick

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.encoder.gpio import GpioEncoder
from cogwork.drivers.encoder.gpio_attributes import IncrementalEncoderAttributes
from cogwork.drivers.encoder.gpio_quadrature import Quadrature
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import named


class IncrementalEncoder(GpioEncoder):
    def __init__(
        self,
        name: ResourceName,
        attributes: IncrementalEncoderAttributes,
        board: Board,
        clock: Clock,
    ) -> None:
        self._pins = attributes.pins
        self._quadrature = Quadrature()
        super().__init__(name, board, [attributes.pins.a, attributes.pins.b], clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: IncrementalEncoderAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> IncrementalEncoder:
        board = named(dependencies, attributes.board)
        encoder = cls(name, attributes, board, clock or SystemClock())
        await encoder.start()
        return encoder

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {**await super().get_status(), "missed": self._quadrature.missed}

    def _hear(self, tick: Tick) -> None:
        signal = self._quadrature.a if tick.pin_name == self._pins.a else self._quadrature.b
        self._ticks += signal(tick.high)
