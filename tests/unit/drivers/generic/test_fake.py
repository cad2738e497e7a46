from __future__ import annotations

import pytest

from cogwork.drivers.generic.attributes import FakeGenericAttributes
from cogwork.drivers.generic.fake import FakeGeneric, FakeGenericService
from cogwork.graph.name import ResourceName


@pytest.mark.parametrize(
    ("kind", "type_"), [("component", FakeGeneric), ("service", FakeGenericService)]
)
async def test_do_command_echoes_the_command(
    kind: str, type_: type[FakeGeneric] | type[FakeGenericService]
) -> None:
    name = ResourceName.parse(f"rdk:{kind}:generic/g")
    generic = await type_.new(name, FakeGenericAttributes(), {})
    command = {"set": [1, 2], "deep": {"er": None}}
    assert await generic.do_command(command, timeout=1, metadata={}) == command
    assert await generic.get_status(timeout=1, metadata={}) == {"commands": 1}


async def test_component_has_no_geometries() -> None:
    name = ResourceName.parse("rdk:component:generic/g")
    generic = await FakeGeneric.new(name, FakeGenericAttributes(), {})
    assert await generic.get_geometries(extra={}, timeout=1) == []
