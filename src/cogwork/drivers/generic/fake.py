"""A generic component or service that answers a command with the command."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from cogwork.config.fields import Attributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class FakeGenericAttributes(Attributes):
    pass


class FakeGeneric:
    def __init__(self, name: ResourceName) -> None:
        self.name = name.name

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeGenericAttributes, dependencies: Dependencies
    ) -> FakeGeneric:
        del attributes, dependencies
        return cls(name)

    async def do_command(self, command: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        return command
