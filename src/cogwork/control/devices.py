"""The devices on this computer that owners can add to the configuration."""

from __future__ import annotations

from typing import Any

from viam.utils import struct_to_dict

from cogwork.drivers.discovery.attributes import SystemDiscoveryAttributes
from cogwork.drivers.discovery.system import SystemDiscovery
from cogwork.graph.name import Api, ResourceName

_NAME = ResourceName(Api("rdk", "service", "discovery"), "devices")


async def find_devices() -> list[dict[str, Any]]:
    """Return each device as a component to configure."""
    discovery = await SystemDiscovery.new(_NAME, SystemDiscoveryAttributes(), {})
    try:
        found = await discovery.discover_resources()
    finally:
        await discovery.close()
    return [
        {
            "name": each.name,
            "api": each.api,
            "model": each.model,
            "attributes": struct_to_dict(each.attributes),
        }
        for each in found
    ]
