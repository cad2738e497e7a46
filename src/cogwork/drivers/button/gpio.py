"""A button whose push is a pulse on a pin of a board."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from viam.components.button import Button

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.button.attributes import GpioButtonAttributes
from cogwork.drivers.gpio.pin_link import PinLink
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of


class GpioButton(Button):
    def __init__(
        self, name: ResourceName, attributes: GpioButtonAttributes, link: PinLink, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._duration = attributes.duration
        self._link = link
        self._clock = clock
        self._lock = asyncio.Lock()
        self._pushes = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioButtonAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioButton:
        board = find_dependency(dependencies, attributes.board)
        link = await PinLink.connect(board, attributes.pin, inverted=attributes.inverted)
        await link.set(False)
        return cls(name, attributes, link, clock or SystemClock())

    async def push(self, **_: Any) -> None:
        """Push and release the button; concurrent pushes are separate pulses."""
        async with self._lock:
            self._pushes += 1
            try:
                await self._link.set(True)
                await self._clock.sleep(self._duration)
            finally:
                await self._link.set(False)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"is_pushed": self._lock.locked(), "pushes": self._pushes}

    async def close(self) -> None:
        await self._link.set(False)
