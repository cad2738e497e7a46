"""A fake generic component or service that echoes commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.generic import Generic as GenericComponent
from viam.services.generic import Generic as GenericService

from cogwork.drivers.generic.attributes import FakeGenericAttributes
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class _Echo:
    _commands = 0

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        self._commands += 1
        return command

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"commands": self._commands}


class FakeGeneric(_Echo, NoGeometry, GenericComponent):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeGenericAttributes, dependencies: Dependencies
    ) -> FakeGeneric:
        del attributes, dependencies
        return cls(name.name, logger=logger_of(name))


class FakeGenericService(_Echo, GenericService):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeGenericAttributes, dependencies: Dependencies
    ) -> FakeGenericService:
        del attributes, dependencies
        return cls(name.name, logger=logger_of(name))
