from __future__ import annotations

from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, WatchedBoard
from viam.components.switch.client import SwitchClient

from cogwork.drivers.switch.attributes import GpioSwitchAttributes
from cogwork.drivers.switch.gpio import GpioSwitch
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:switch/s")


@pytest.fixture
async def board() -> WatchedBoard:
    return WatchedBoard()


async def built(board: WatchedBoard, **attributes: Any) -> GpioSwitch:
    given = GpioSwitchAttributes(board="pins", **attributes)
    return await GpioSwitch.new(NAME, given, {BOARD: board})


@pytest.mark.parametrize(
    ("attributes", "count", "levels"),
    [
        ({"pins": ["x"]}, 2, ["0", "1"]),
        ({"pins": ["x"], "inverted": True}, 2, ["1", "0"]),
        ({"pins": ["x", "y"]}, 4, ["00", "10", "01", "11"]),
        ({"pins": ["x", "y", "z"], "code": "one_of"}, 3, ["100", "010", "001"]),
    ],
)
async def test_its_position_is_on_the_pins(
    board: WatchedBoard, serve: Serve, attributes: dict[str, Any], count: int, levels: list[str]
) -> None:
    async with serve(await built(board, **attributes)) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_number_of_positions() == (count, [])
        for position in (*range(count), 0):
            await client.set_position(position)
            found = "".join(str(int(board.level(name))) for name in attributes["pins"])
            assert (await client.get_position(), found) == (position, levels[position])


async def test_it_starts_where_it_should(board: WatchedBoard) -> None:
    switch = await built(board, pins=["x"], position=1, labels=["off", "on"])
    assert board.level("x") == 1
    assert await switch.get_status() == {"position": 1, "label": "on"}


async def test_what_is_off_is_off_before_the_next_is_on(board: WatchedBoard) -> None:
    switch = await built(board, pins=["x", "y"], code="one_of", position=1)
    board.told.clear()
    await switch.set_position(0)
    assert board.told == [("y", 0), ("x", 1)]


async def test_a_position_that_there_is_not(board: WatchedBoard, serve: Serve) -> None:
    async with serve(await built(board, pins=["x"])) as channel:
        with refused() as told:
            await SwitchClient("s", channel).set_position(2)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'switch "s" has the positions 0 to 1, and no 2'


@pytest.mark.parametrize("inverted", [False, True])
async def test_closed_everything_is_off(board: WatchedBoard, inverted: bool) -> None:
    switch = await built(board, pins=["x", "y"], position=3, inverted=inverted)
    await switch.close()
    assert [board.level(name) for name in "xy"] == [inverted] * 2


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"pins": []}, "at least 1 item"),
        ({"pins": ["x"] * 2}, "the same pin stands here twice"),
        ({"pins": ["x"], "labels": ["a"]}, "1 labels are not one for each of 2"),
        ({"pins": ["x"], "position": 2}, "position 2 is beyond the last, which is 1"),
    ],
)
def test_attributes_that_cannot_be(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioSwitchAttributes.model_validate({"board": "pins", **attributes})
