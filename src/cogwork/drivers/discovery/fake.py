"""A discovery service that reports the configured resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.proto.app.robot import ComponentConfig
from viam.services.discovery import Discovery

from cogwork.drivers.discovery.attributes import FakeDiscoveryAttributes
from cogwork.drivers.discovery.config_proto import to_component_config
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeDiscovery(Discovery):
    def __init__(self, name: ResourceName, attributes: FakeDiscoveryAttributes) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._resources = attributes.resources
        self._search_count = 0

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeDiscoveryAttributes, dependencies: Dependencies
    ) -> FakeDiscovery:
        del dependencies
        return cls(name, attributes)

    async def discover_resources(self, **_: Any) -> list[ComponentConfig]:
        self._search_count += 1
        return [to_component_config(each) for each in self._resources]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"resources": len(self._resources), "searches": self._search_count}
