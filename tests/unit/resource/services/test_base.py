from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.machine.served import served
from viam.components.base import Base
from viam.components.base.client import BaseClient

from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:base/b")


class RecordingBase(FakeBase):
    arguments: Mapping[str, Any] = {}

    async def get_properties(self, **arguments_given: Any) -> Base.Properties:
        self.arguments = arguments_given
        return Base.Properties(0.5, 0.25, 0.125)


async def test_get_properties_passes_extra_and_timeout() -> None:
    base = await RecordingBase.new(NAME, FakeBaseAttributes(), {})
    assert isinstance(base, RecordingBase)
    async with served(base) as channel:
        client = BaseClient("b", channel)
        properties = await client.get_properties(extra={"loaded": True}, timeout=10)
    assert properties == Base.Properties(0.5, 0.25, 0.125)
    assert base.arguments["extra"] == {"loaded": True}
    assert 0 < base.arguments["timeout"] <= 10
