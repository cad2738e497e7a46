"""A switch whose position is on pins of a board: one relay, or several."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.switch import Switch

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gpio.pin import PinFault
from cogwork.drivers.gpio.wire import Wire, every
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
        self._position: int | None = None
        """None: not known, because its pins did not obey."""
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
        if self._position is None:
            raise PinFault(self._lost)
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
        if self._position is None:
            return {"trouble": self._lost}
        labels = self._attributes.labels
        status: dict[str, Any] = {"position": self._position}
        return {**status, "label": labels[self._position]} if labels else status

    async def close(self) -> None:
        async with self._one_at_a_time:
            await self._write(self._all_off)

    async def _switch(self, position: int) -> None:
        async with self._one_at_a_time:
            try:
                await self._write(self._attributes.levels(position))
            except BaseException:
                with contextlib.suppress(Exception):
                    await self._fall_back()
                raise
            self._position = position

    async def _fall_back(self) -> None:
        """To where it stood; with everything off, if nobody knows."""
        before, self._position = self._position, None
        await self._write(self._all_off if before is None else self._attributes.levels(before))
        self._position = before

    async def _write(self, levels: Sequence[bool]) -> None:
        """All that shall be off are off before any is on: two relays that exclude one another are
        never on together."""
        pairs = list(zip(self._wires, levels, strict=True))
        await every(wire.set(False) for wire, on in pairs if not on)
        await every(wire.set(True) for wire, on in pairs if on)

    @property
    def _all_off(self) -> Sequence[bool]:
        return [False] * len(self._wires)

    @property
    def _lost(self) -> str:
        return (
            f'where switch "{self.name}" stands is not known, because its pins did not obey when '
            "it was set; look at its board, and set it again"
        )
