"""An encoder of one signal, which does not know which way it turns."""

from __future__ import annotations

from viam.components.board import Board, Tick

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.encoder.gpio import GpioEncoder
from cogwork.drivers.encoder.gpio_attributes import SingleEncoderAttributes
from cogwork.drivers.gpio.turning import Direction
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import named


class SingleEncoder(GpioEncoder):
    def __init__(
        self, name: ResourceName, attributes: SingleEncoderAttributes, board: Board, clock: Clock
    ) -> None:
        self._direction: Direction = lambda: 1
        super().__init__(name, board, [attributes.pins.i], clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: SingleEncoderAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> SingleEncoder:
        board = named(dependencies, attributes.board)
        encoder = cls(name, attributes, board, clock or SystemClock())
        await encoder.start()
        return encoder

    def turn_with(self, direction: Direction) -> None:
        """The motor on the same shaft says so, when it is built."""
        self._direction = direction

    def _hear(self, tick: Tick) -> None:
        if tick.high:
            self._ticks += self._direction()
