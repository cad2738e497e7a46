"""An incremental encoder with two signals, which measures the direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.board import Board, Tick

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.encoder.attributes import IncrementalEncoderAttributes
from cogwork.drivers.encoder.gpio import GpioEncoder
from cogwork.drivers.encoder.gpio_quadrature import QuadratureDecoder
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency


class IncrementalEncoder(GpioEncoder):
    def __init__(
        self,
        name: ResourceName,
        attributes: IncrementalEncoderAttributes,
        board: Board,
        clock: Clock,
    ) -> None:
        self._pins = attributes.pins
        self._quadrature = QuadratureDecoder()
        super().__init__(name, board, [attributes.pins.a, attributes.pins.b], clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: IncrementalEncoderAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> IncrementalEncoder:
        board = find_dependency(dependencies, attributes.board)
        encoder = cls(name, attributes, board, clock or SystemClock())
        await encoder.start()
        return encoder

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {**await super().get_status(), "missed": self._quadrature.missed}

    def _on_tick(self, tick: Tick) -> None:
        signal = self._quadrature.on_a if tick.pin_name == self._pins.a else self._quadrature.on_b
        self._ticks += signal(tick.high)
