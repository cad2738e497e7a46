"""A button that counts how often it is pushed, and may pulse a pin each time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from viam.components.board import Board
from viam.components.button import Button

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.button.attributes import FakeButtonAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named


class FakeButton(Button):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeButtonAttributes,
        board: Board | None,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._board = board
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._pushes = 0
        self._last: float | None = None

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeButtonAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeButton:
        board = named(dependencies, attributes.board) if attributes.board is not None else None
        return cls(name, attributes, board, clock or SystemClock())

    async def push(self, **_: Any) -> None:
        # Two pushes at once are two pulses, one after the other.
        async with self._one_at_a_time:
            self._pushes += 1
            self._last = self._clock.time()
            if self._board is not None and self._attributes.pin is not None:
                await self._pulse(await self._board.gpio_pin_by_name(self._attributes.pin))

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        """The last push as RFC 3339 has it, once there is one."""
        status: dict[str, Any] = {"pushes": self._pushes}
        if self._last is None:
            return status
        return {**status, "last_push": datetime.fromtimestamp(self._last, UTC).isoformat()}

    async def _pulse(self, pin: Board.GPIOPin) -> None:
        try:
            await pin.set(True)
            await self._clock.sleep(self._attributes.pulse)
        finally:
            await pin.set(False)
