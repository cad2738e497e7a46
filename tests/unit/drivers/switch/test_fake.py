from __future__ import annotations

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from viam.components.switch.client import SwitchClient

from cogwork.drivers.switch.attributes import FakeSwitchAttributes
from cogwork.drivers.switch.fake import FakeSwitch
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:switch/s")


async def create_switch(**attributes: object) -> FakeSwitch:
    return await FakeSwitch.new(NAME, FakeSwitchAttributes.model_validate(attributes), {})


async def test_switch_has_two_positions_and_starts_at_the_first(serve: Serve) -> None:
    async with serve(await create_switch()) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_number_of_positions() == (2, [])
        assert await client.get_position() == 0
        assert await client.get_status() == {"position": 0}


async def test_position_is_kept(serve: Serve) -> None:
    async with serve(await create_switch(position_count=5, position=4)) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_position() == 4
        await client.set_position(3)
        assert await client.get_position() == 3


async def test_positions_may_have_labels(serve: Serve) -> None:
    async with serve(await create_switch(labels=["off", "slow", "fast"])) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_number_of_positions() == (3, ["off", "slow", "fast"])
        await client.set_position(2)
        assert await client.get_status() == {"position": 2, "label": "fast"}


async def test_position_beyond_the_last_is_refused(serve: Serve) -> None:
    async with serve(await create_switch(position_count=3)) as channel:
        client = SwitchClient("s", channel)
        with refused() as told:
            await client.set_position(3)
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words == 'switch "s" has the positions 0 to 2, not 3'
        assert await client.get_position() == 0


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"position_count": 2, "labels": ["a", "b", "c"]}, "there are 2 positions, but 3 labels"),
        ({"position": 2}, "position 2 does not exist: the last one is 1"),
        ({"labels": ["only"], "position": 1}, "position 1 does not exist: the last one is 0"),
    ],
)
def test_contradictory_attributes_are_refused(attributes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FakeSwitchAttributes.model_validate(attributes)
