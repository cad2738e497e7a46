"""A switch whose position is on pins of a board: one relay, or several."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.switch import Switch

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gpio.wire import Wire
from cogwork.drivers.switch.attributes import GpioSwitchAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named


class GpioSwitch(Switch):
    def __init__(
        self, name: ResourceName, attributes: GpioSwitchAttributes, wires: Sequence[Wire]
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._wires = wires
        self._position = attributes.position
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: GpioSwitchAttributes, dependencies: Dependencies
    ) -> GpioSwitch:
        board = named(dependencies, attributes.board)
        wires = [await Wire.to(board, pin, inverted=attributes.inverted) for pin in attributes.pins]
        switch = cls(name, attributes, wires)
        await switch._switch(attributes.position)
        return switch

    async def get_position(self, **_: Any) -> int:
        return self._position

    async def set_position(self, position: int, **_: Any) -> None:
        count = self._attributes.count
        if not 0 <= position < count:
            raise InvalidRequest(
                f'switch "{self.name}" has the positions 0 to {count - 1}, and no {position}'
            )
        await self._switch(position)

    async def get_number_of_positions(self, **_: Any) -> tuple[int, Sequence[str]]:
        return self._attributes.count, self._attributes.labels

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        labels = self._attributes.labels
        status: dict[str, Any] = {"position": self._position}
        return {**status, "label": labels[self._position]} if labels else status

    async def close(self) -> None:
        await self._write([False] * len(self._wires))

    async def _switch(self, position: int) -> None:
        async with self._one_at_a_time:
            await self._write(self._attributes.levels(position))
            self._position = position

    async def _write(self, levels: Sequence[bool]) -> None:
        """Off before on: two relays that exclude one another are never on together."""
        pairs = list(zip(self._wires, levels, strict=True))
        for wire, on in sorted(pairs, key=lambda pair: pair[1]):
            await wire.set(on)
