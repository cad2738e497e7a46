"""What a discovery service keeps to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from viam.proto.app.robot import ComponentConfig
from viam.services.discovery.client import DiscoveryClient

from cogwork.config.load import load
from cogwork.config.surroundings import Surroundings
from cogwork.contracts.contract import PATIENCE, Contract
from cogwork.drivers.table import builtin_models
from cogwork.graph.name import Api, ModelName, check_name
from cogwork.resource.registry import Registry, plugged_in


class DiscoveryContract(Contract):
    api = "rdk:service:discovery"
    client = DiscoveryClient

    async def test_what_it_finds_has_a_name_and_says_what_it_is(self, it: Any) -> None:
        found = await it.discover_resources(timeout=PATIENCE)
        names = [check_name(each.name) for each in found]
        assert len(set(names)) == len(names), "two have the same name"
        for each in found:
            assert Api.parse(each.api).kind in ("component", "service")
            assert ModelName.parse(each.model)

    async def test_it_finds_the_same_again(self, it: Any) -> None:
        """Unless somebody plugs something in meanwhile."""
        first = await it.discover_resources(timeout=PATIENCE)
        assert await it.discover_resources(timeout=PATIENCE) == first

    async def test_what_it_finds_can_be_pasted_into_a_configuration(self, it: Any) -> None:
        found = await it.discover_resources(timeout=PATIENCE)
        registry = Registry([*self.models, *builtin_models(), *plugged_in()])
        loaded = load(_file(found), Surroundings(registry, Path.home(), {}))
        complaints = [located.diagnostic.message for located in loaded.faults]
        assert not loaded.has_errors, "; ".join(complaints)


def _file(found: Sequence[ComponentConfig]) -> str:
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
