from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, WatchedBoard
from viam.components.switch.client import SwitchClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.gpio.pin import PinFault
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


def levels(board: WatchedBoard, pins: Iterable[str]) -> str:
    return "".join(str(int(board.level(name))) for name in pins)


@pytest.mark.parametrize(
    ("attributes", "count", "expected"),
    [
        ({"pins": ["x"]}, 2, ["0", "1"]),
        ({"pins": ["x"], "inverted": True}, 2, ["1", "0"]),
        ({"pins": ["x", "y"]}, 4, ["00", "10", "01", "11"]),
        ({"pins": ["x", "y", "z"], "code": "one_of"}, 3, ["100", "010", "001"]),
    ],
)
async def test_its_position_is_on_the_pins(
    board: WatchedBoard, serve: Serve, attributes: dict[str, Any], count: int, expected: list[str]
) -> None:
    async with serve(await built(board, **attributes)) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_number_of_positions() == (count, [])
        for position in (*range(count), 0):
            await client.set_position(position)
            found = levels(board, attributes["pins"])
            assert (await client.get_position(), found) == (position, expected[position])


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
    assert told.words == 'switch "s" has the positions 0 to 1, not 2'


@pytest.mark.parametrize("inverted", [False, True])
async def test_closed_everything_is_off(board: WatchedBoard, inverted: bool) -> None:
    switch = await built(board, pins=["x", "y"], position=3, inverted=inverted)
    await switch.close()
    assert [board.level(name) for name in "xy"] == [inverted] * 2


async def test_closed_every_pin_that_can_be_is_off(board: WatchedBoard) -> None:
    switch = await built(board, pins=["x", "y", "z"], position=7)
    board.broken = "x"
    with pytest.raises(OSError, match="loose"):
        await switch.close()
    assert levels(board, "xyz") == "100"


async def test_closed_while_it_is_set_everything_is_off(board: WatchedBoard) -> None:
    clock = ManualClock()
    switch = await built(board, pins=["x", "y"], code="one_of")
    board.gates["y"] = gate = asyncio.Event()
    setting = asyncio.ensure_future(switch.set_position(1))
    await clock.settle()
    board.gates.clear()
    closing = asyncio.ensure_future(switch.close())
    await clock.settle()
    gate.set()
    await asyncio.wait_for(asyncio.gather(setting, closing), 10)
    assert levels(board, "xy") == "00"


async def test_a_switch_that_fails_stands_where_it_stood(board: WatchedBoard) -> None:
    switch = await built(board, pins=["x", "y"], code="one_of")
    board.refused = {("y", 1)}
    with pytest.raises(OSError, match="loose"):
        await switch.set_position(1)
    assert (await switch.get_position(), levels(board, "xy")) == (0, "10")


async def test_a_switch_whose_client_is_gone_stands_where_it_stood(board: WatchedBoard) -> None:
    clock = ManualClock()
    switch = await built(board, pins=["x", "y"], code="one_of")
    board.gates["y"] = asyncio.Event()
    setting = asyncio.ensure_future(switch.set_position(1))
    await clock.settle()
    setting.cancel()
    board.gates["y"].set()
    await asyncio.wait([setting], timeout=10)
    assert setting.cancelled()
    assert (await switch.get_position(), levels(board, "xy")) == (0, "10")


async def test_a_switch_that_cannot_go_back_does_not_know_where_it_stands(
    board: WatchedBoard, serve: Serve
) -> None:
    """A pin that does not obey may be on: no other is switched on beside it."""
    switch = await built(board, pins=["x", "y"], code="one_of", labels=["a", "b"])
    board.broken = "y"
    async with serve(switch) as channel:
        client = SwitchClient("s", channel)
        with refused():
            await client.set_position(1)
        assert levels(board, "xy") == "00"
        with refused() as told:
            await client.get_position()
        assert told.status is Status.UNAVAILABLE
        assert told.words == (
            'the position of switch "s" is unknown, because a pin failed when it was set; '
            "check its board and set it again"
        )
        assert await client.get_status() == {"trouble": told.words}
        with refused():
            await client.set_position(0)
        with pytest.raises(PinFault):
            await switch.get_position()
        board.broken = None
        await client.set_position(0)
        assert (await client.get_position(), levels(board, "xy")) == (0, "10")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"pins": []}, "at least 1 item"),
        ({"pins": ["x"] * 2}, "a pin is used twice"),
        ({"pins": ["x"], "labels": ["a"]}, "there are 1 labels, but 2 positions"),
        ({"pins": ["x"], "position": 2}, "position 2 does not exist: the last one is 1"),
    ],
)
def test_attributes_that_cannot_be(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioSwitchAttributes.model_validate({"board": "pins", **attributes})
