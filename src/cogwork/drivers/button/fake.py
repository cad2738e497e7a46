"""A fake button that counts pushes and optionally pulses a pin."""

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
from cogwork.resource.model import find_dependency, logger_of


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
        self._lock = asyncio.Lock()
        self._pushes = 0
        self._last_push: float | None = None

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeButtonAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeButton:
        board = (
            find_dependency(dependencies, attributes.board)
            if attributes.board is not None
            else None
        )
        return cls(name, attributes, board, clock or SystemClock())

    async def push(self, **_: Any) -> None:
        # Serialize concurrent pushes, so that each one is a separate pulse.
        async with self._lock:
            self._pushes += 1
            self._last_push = self._clock.time()
            if self._board is not None and self._attributes.pin is not None:
                await self._pulse(await self._board.gpio_pin_by_name(self._attributes.pin))

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        """Return the count of pushes, and the time of the last one in RFC 3339 format."""
        status: dict[str, Any] = {"pushes": self._pushes}
        if self._last_push is None:
            return status
        return {**status, "last_push": datetime.fromtimestamp(self._last_push, UTC).isoformat()}

    async def _pulse(self, pin: Board.GPIOPin) -> None:
        try:
            await pin.set(True)
            await self._clock.sleep(self._attributes.pulse)
        finally:
            await pin.set(False)
