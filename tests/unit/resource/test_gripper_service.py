from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.served import served
from viam.components.gripper import Gripper
from viam.components.gripper.client import GripperClient

from cogwork.drivers.gripper.attributes import FakeGripperAttributes
from cogwork.drivers.gripper.fake import FakeGripper
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:gripper/g")


class Listening(FakeGripper):
    heard: Mapping[str, Any] = {}

    async def is_holding_something(self, **told: Any) -> Gripper.HoldingStatus:
        self.heard = told
        return Gripper.HoldingStatus(True)


async def test_a_gripper_hears_all_of_the_question() -> None:
    gripper = await Listening.new(NAME, FakeGripperAttributes(), {})
    assert isinstance(gripper, Listening)
    async with served(gripper) as channel:
        client = GripperClient("g", channel)
        status = await client.is_holding_something(extra={"slowly": True}, timeout=10)
    assert status.is_holding_something
    assert status.meta == {}
    assert gripper.heard["extra"] == {"slowly": True}
    assert 0 < gripper.heard["timeout"] <= 10
