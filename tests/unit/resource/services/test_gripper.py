from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.machine.served import served
from viam.components.gripper import Gripper
from viam.components.gripper.client import GripperClient

from cogwork.drivers.gripper.attributes import FakeGripperAttributes
from cogwork.drivers.gripper.fake import FakeGripper
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:gripper/g")


class RecordingGripper(FakeGripper):
    arguments: Mapping[str, Any] = {}

    async def is_holding_something(self, **arguments_given: Any) -> Gripper.HoldingStatus:
        self.arguments = arguments_given
        return Gripper.HoldingStatus(True)


async def test_is_holding_something_passes_extra_and_timeout() -> None:
    gripper = await RecordingGripper.new(NAME, FakeGripperAttributes(), {})
    assert isinstance(gripper, RecordingGripper)
    async with served(gripper) as channel:
        client = GripperClient("g", channel)
        status = await client.is_holding_something(extra={"slowly": True}, timeout=10)
    assert status.is_holding_something
    assert status.meta == {}
    assert gripper.arguments["extra"] == {"slowly": True}
    assert 0 < gripper.arguments["timeout"] <= 10
