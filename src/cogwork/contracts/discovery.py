"""The contract of discovery services."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from viam.proto.app.robot import ComponentConfig
from viam.services.discovery.client import DiscoveryClient

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import Api, ModelName, check_name
from cogwork.resource.registry import Registry, entry_point_models


class DiscoveryContract(Contract):
    api = "rdk:service:discovery"
    client = DiscoveryClient

    async def test_discovered_resources_are_named(self, resource: Any) -> None:
        found = await resource.discover_resources(timeout=TIMEOUT)
        names = [check_name(each.name) for each in found]
        assert len(set(names)) == len(names), "two resources have the same name"
        for each in found:
            assert Api.parse(each.api).kind in ("component", "service")
            assert ModelName.parse(each.model)

    async def test_discovery_is_repeatable(self, resource: Any) -> None:
        """No device must be connected or removed during this test."""
        first = await resource.discover_resources(timeout=TIMEOUT)
        assert await resource.discover_resources(timeout=TIMEOUT) == first

    async def test_discovered_configuration_is_valid(self, resource: Any) -> None:
        found = await resource.discover_resources(timeout=TIMEOUT)
        registry = Registry([*self.models, *builtin_models(), *entry_point_models()])
        loaded = load(_to_config_text(found), LoadContext(registry, Path.home(), {}))
        complaints = [located.diagnostic.message for located in loaded.diagnostics]
        assert not loaded.has_errors, "; ".join(complaints)


def _to_config_text(found: Sequence[ComponentConfig]) -> str:
    sections: dict[str, list[dict[str, Any]]] = {"components": [], "services": []}
    for each in found:
        sections[f"{Api.parse(each.api).kind}s"].append(
            {
                "name": each.name,
                "api": each.api,
                "model": each.model,
                "attributes": MessageToDict(each.attributes),
            }
        )
    return json.dumps(sections)
