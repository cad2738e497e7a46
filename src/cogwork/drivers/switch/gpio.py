"""A switch whose position is encoded on pins of a board: one relay or several."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.switch import Switch

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gpio.pin import PinFault
from cogwork.drivers.gpio.pin_link import PinLink, run_all
from cogwork.drivers.switch.attributes import GpioSwitchAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of


class GpioSwitch(Switch):
    def __init__(
        self, name: ResourceName, attributes: GpioSwitchAttributes, links: Sequence[PinLink]
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._links = links
        self._position: int | None = None
        """The position, or None if a pin failed and the position is unknown."""
        self._lock = asyncio.Lock()

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: GpioSwitchAttributes, dependencies: Dependencies
    ) -> GpioSwitch:
        board = find_dependency(dependencies, attributes.board)
        links = [
            await PinLink.connect(board, pin, inverted=attributes.inverted)
            for pin in attributes.pins
        ]
        switch = cls(name, attributes, links)
        await switch._switch_to(attributes.position)
        return switch

    async def get_position(self, **_: Any) -> int:
        if self._position is None:
            raise PinFault(self._unknown_position_message)
        return self._position

    async def set_position(self, position: int, **_: Any) -> None:
        count = self._attributes.count
        if not 0 <= position < count:
            raise InvalidRequest(
                f'switch "{self.name}" has the positions 0 to {count - 1}, not {position}'
            )
        await self._switch_to(position)

    async def get_number_of_positions(self, **_: Any) -> tuple[int, Sequence[str]]:
        return self._attributes.count, self._attributes.labels

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        if self._position is None:
            return {"trouble": self._unknown_position_message}
        labels = self._attributes.labels
        status: dict[str, Any] = {"position": self._position}
        return {**status, "label": labels[self._position]} if labels else status

    async def close(self) -> None:
        async with self._lock:
            await self._write(self._all_off)

    async def _switch_to(self, position: int) -> None:
        async with self._lock:
            try:
                await self._write(self._attributes.levels(position))
            except BaseException:
                with contextlib.suppress(Exception):
                    await self._restore()
                raise
            self._position = position

    async def _restore(self) -> None:
        """Restore the previous position. If it is unknown, turn all pins off."""
        before, self._position = self._position, None
        await self._write(self._all_off if before is None else self._attributes.levels(before))
        self._position = before

    async def _write(self, levels: Sequence[bool]) -> None:
        """Write the pins, first those that turn off, so that exclusive relays are never on
        together."""
        pairs = list(zip(self._links, levels, strict=True))
        await run_all(link.set(False) for link, on in pairs if not on)
        await run_all(link.set(True) for link, on in pairs if on)

    @property
    def _all_off(self) -> Sequence[bool]:
        return [False] * len(self._links)

    @property
    def _unknown_position_message(self) -> str:
        return (
            f'the position of switch "{self.name}" is unknown, because a pin failed when '
            "it was set; check its board and set it again"
        )
