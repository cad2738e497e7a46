"""A fake switch that keeps its position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.switch import Switch

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.switch.attributes import FakeSwitchAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeSwitch(Switch):
    def __init__(self, name: ResourceName, attributes: FakeSwitchAttributes) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._count = attributes.count
        self._labels = attributes.labels
        self._position = attributes.position

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeSwitchAttributes, dependencies: Dependencies
    ) -> FakeSwitch:
        del dependencies
        return cls(name, attributes)

    async def get_position(self, **_: Any) -> int:
        return self._position

    async def set_position(self, position: int, **_: Any) -> None:
        if not 0 <= position < self._count:
            raise InvalidRequest(
                f'switch "{self.name}" has the positions 0 to {self._count - 1}, not {position}'
            )
        self._position = position

    async def get_number_of_positions(self, **_: Any) -> tuple[int, Sequence[str]]:
        return self._count, self._labels

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        status: dict[str, Any] = {"position": self._position}
        return {**status, "label": self._labels[self._position]} if self._labels else status
