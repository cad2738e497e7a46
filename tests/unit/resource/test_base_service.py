from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.served import served
from viam.components.base import Base
from viam.components.base.client import BaseClient

from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:base/b")


class Listening(FakeBase):
    heard: Mapping[str, Any] = {}

    async def get_properties(self, **told: Any) -> Base.Properties:
        self.heard = told
        return Base.Properties(0.5, 0.25, 0.125)


async def test_a_base_hears_all_of_the_question() -> None:
    base = await Listening.new(NAME, FakeBaseAttributes(), {})
    assert isinstance(base, Listening)
    async with served(base) as channel:
        client = BaseClient("b", channel)
        properties = await client.get_properties(extra={"loaded": True}, timeout=10)
    assert properties == Base.Properties(0.5, 0.25, 0.125)
    assert base.heard["extra"] == {"loaded": True}
    assert 0 < base.heard["timeout"] <= 10
