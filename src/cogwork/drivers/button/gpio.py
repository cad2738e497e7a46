"""A button whose push is a pulse on a pin of a board."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from viam.components.button import Button

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.button.gpio_attributes import GpioButtonAttributes
from cogwork.drivers.gpio.wire import Wire
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named


class GpioButton(Button):
    def __init__(
        self, name: ResourceName, attributes: GpioButtonAttributes, wire: Wire, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._duration = attributes.duration
        self._wire = wire
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._pushes = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioButtonAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioButton:
        board = named(dependencies, attributes.board)
        wire = await Wire.to(board, attributes.pin, inverted=attributes.inverted)
        await wire.set(False)
        return cls(name, attributes, wire, clock or SystemClock())

    async def push(self, **_: Any) -> None:
        """Until it is released. Two pushes at once are two pulses, one after the other."""
        async with self._one_at_a_time:
            self._pushes += 1
            try:
                await self._wire.set(True)
                await self._clock.sleep(self._duration)
            finally:
                await self._wire.set(False)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"is_pushed": self._one_at_a_time.locked(), "pushes": self._pushes}

    async def close(self) -> None:
        await self._wire.set(False)
