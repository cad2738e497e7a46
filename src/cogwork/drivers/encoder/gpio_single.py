"""An encoder with one signal, which cannot measure the direction."""

from __future__ import annotations

from viam.components.board import Board, Tick

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.encoder.attributes import SingleEncoderAttributes
from cogwork.drivers.encoder.gpio import GpioEncoder
from cogwork.drivers.gpio.direction import DirectionSource
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency


class SingleEncoder(GpioEncoder):
    def __init__(
        self, name: ResourceName, attributes: SingleEncoderAttributes, board: Board, clock: Clock
    ) -> None:
        self._direction: DirectionSource = lambda: 1
        super().__init__(name, board, [attributes.pins.i], clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: SingleEncoderAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> SingleEncoder:
        board = find_dependency(dependencies, attributes.board)
        encoder = cls(name, attributes, board, clock or SystemClock())
        await encoder.start()
        return encoder

    def set_direction_source(self, direction: DirectionSource) -> None:
        """Set the source of the direction.

        The motor on the same shaft calls this method when it is built.
        """
        self._direction = direction

    def _on_tick(self, tick: Tick) -> None:
        if tick.high:
            self._ticks += self._direction()
