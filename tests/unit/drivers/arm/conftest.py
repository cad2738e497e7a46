from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.machine.served import Serve
from viam.components.arm.client import ArmClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.fake import FakeArm
from cogwork.graph.name import ResourceName


@pytest.fixture
async def arm(clock: ManualClock) -> AsyncIterator[FakeArm]:
    name = ResourceName.parse("rdk:component:arm/a")
    arm = await FakeArm.new(name, FakeArmAttributes(speed_degs_per_sec=10), {}, clock)
    yield arm
    await arm.close()


@pytest.fixture
async def client(arm: FakeArm, serve: Serve) -> AsyncIterator[ArmClient]:
    async with serve(arm) as channel:
        yield ArmClient("a", channel)
