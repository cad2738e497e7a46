"""A board that records what its pins are set to, in order."""

from __future__ import annotations

import asyncio
from typing import Any

from cogwork.core.clock import Clock, ManualClock
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.board.fake import FakeBoard, FakePin
from cogwork.graph.name import ResourceName

BOARD = ResourceName.parse("rdk:component:board/pins")
INTERRUPTS = [{"name": "a", "pin": "1"}, {"name": "b", "pin": "2"}]


class RecordingBoard(FakeBoard):
    """A fake board, which stands for any board: drivers use all of them alike."""

    def __init__(self, clock: Clock | None = None) -> None:
        attributes = FakeBoardAttributes.model_validate({"digital_interrupts": INTERRUPTS})
        super().__init__(BOARD, attributes, clock or ManualClock())
        self.writes: list[tuple[str, float]] = []
        self.broken: str | None = None
        """The pin that cannot be set."""
        self.refused: set[tuple[str, float]] = set()
        """Levels that a pin does not take."""
        self.gates: dict[str, asyncio.Event] = {}
        """Pins that neither act nor answer until their event is set."""

    async def gpio_pin_by_name(self, name: str) -> FakePin:
        if name not in self._pins:
            self._pins[name] = RecordingPin(self, name)
        return self._pins[name]

    def level(self, name: str) -> float:
        pin = self._pins[name]
        return float(pin.high) or pin._duty_cycle


class RecordingPin(FakePin):
    def __init__(self, board: RecordingBoard, name: str) -> None:
        super().__init__(name, board._on_pin_change)
        self._board = board

    async def set(self, high: bool, **_: Any) -> None:
        await self._record(float(high))
        await super().set(high)

    async def set_pwm(self, duty_cycle: float, **_: Any) -> None:
        await self._record(duty_cycle)
        await super().set(False)
        await super().set_pwm(duty_cycle)

    async def _record(self, level: float) -> None:
        if gate := self._board.gates.get(self.name):
            await gate.wait()
        if self._board.broken == self.name or (self.name, level) in self._board.refused:
            raise OSError("the wire is loose")
        self._board.writes.append((self.name, level))
