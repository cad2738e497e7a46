from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, RecordingBoard
from viam.components.switch.client import SwitchClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.gpio.pin import PinFault
from cogwork.drivers.switch.attributes import GpioSwitchAttributes
from cogwork.drivers.switch.gpio import GpioSwitch
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:switch/s")


@pytest.fixture
async def board() -> RecordingBoard:
    return RecordingBoard()


async def create_switch(board: RecordingBoard, **attributes: Any) -> GpioSwitch:
    given = GpioSwitchAttributes(board="pins", **attributes)
    return await GpioSwitch.new(NAME, given, {BOARD: board})


def read_levels(board: RecordingBoard, pins: Iterable[str]) -> str:
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
async def test_position_is_set_on_the_pins(
    board: RecordingBoard, serve: Serve, attributes: dict[str, Any], count: int, expected: list[str]
) -> None:
    async with serve(await create_switch(board, **attributes)) as channel:
        client = SwitchClient("s", channel)
        assert await client.get_number_of_positions() == (count, [])
        for position in (*range(count), 0):
            await client.set_position(position)
            found = read_levels(board, attributes["pins"])
            assert (await client.get_position(), found) == (position, expected[position])


async def test_switch_starts_at_the_configured_position(board: RecordingBoard) -> None:
    switch = await create_switch(board, pins=["x"], position=1, labels=["off", "on"])
    assert board.level("x") == 1
    assert await switch.get_status() == {"position": 1, "label": "on"}


async def test_pins_are_switched_off_before_others_are_switched_on(board: RecordingBoard) -> None:
    switch = await create_switch(board, pins=["x", "y"], code="one_of", position=1)
    board.writes.clear()
    await switch.set_position(0)
    assert board.writes == [("y", 0), ("x", 1)]


async def test_unknown_position_is_refused(board: RecordingBoard, serve: Serve) -> None:
    async with serve(await create_switch(board, pins=["x"])) as channel:
        with refused() as told:
            await SwitchClient("s", channel).set_position(2)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'switch "s" has the positions 0 to 1, not 2'


@pytest.mark.parametrize("inverted", [False, True])
async def test_close_switches_all_pins_off(board: RecordingBoard, inverted: bool) -> None:
    switch = await create_switch(board, pins=["x", "y"], position=3, inverted=inverted)
    await switch.close()
    assert [board.level(name) for name in "xy"] == [inverted] * 2


async def test_close_switches_off_the_other_pins_when_one_fails(board: RecordingBoard) -> None:
    switch = await create_switch(board, pins=["x", "y", "z"], position=7)
    board.broken = "x"
    with pytest.raises(OSError, match="loose"):
        await switch.close()
    assert read_levels(board, "xyz") == "100"


async def test_close_during_set_position_switches_all_pins_off(board: RecordingBoard) -> None:
    clock = ManualClock()
    switch = await create_switch(board, pins=["x", "y"], code="one_of")
    board.gates["y"] = gate = asyncio.Event()
    setting = asyncio.ensure_future(switch.set_position(1))
    await clock.settle()
    board.gates.clear()
    closing = asyncio.ensure_future(switch.close())
    await clock.settle()
    gate.set()
    await asyncio.wait_for(asyncio.gather(setting, closing), 10)
    assert read_levels(board, "xy") == "00"


async def test_failed_set_position_restores_the_old_position(board: RecordingBoard) -> None:
    switch = await create_switch(board, pins=["x", "y"], code="one_of")
    board.refused = {("y", 1)}
    with pytest.raises(OSError, match="loose"):
        await switch.set_position(1)
    assert (await switch.get_position(), read_levels(board, "xy")) == (0, "10")


async def test_cancelled_set_position_restores_the_old_position(board: RecordingBoard) -> None:
    clock = ManualClock()
    switch = await create_switch(board, pins=["x", "y"], code="one_of")
    board.gates["y"] = asyncio.Event()
    setting = asyncio.ensure_future(switch.set_position(1))
    await clock.settle()
    setting.cancel()
    board.gates["y"].set()
    await asyncio.wait([setting], timeout=10)
    assert setting.cancelled()
    assert (await switch.get_position(), read_levels(board, "xy")) == (0, "10")


async def test_position_is_unknown_when_it_cannot_be_restored(
    board: RecordingBoard, serve: Serve
) -> None:
    """A pin that does not obey may be on: no other pin is switched on beside it."""
    switch = await create_switch(board, pins=["x", "y"], code="one_of", labels=["a", "b"])
    board.broken = "y"
    async with serve(switch) as channel:
        client = SwitchClient("s", channel)
        with refused():
            await client.set_position(1)
        assert read_levels(board, "xy") == "00"
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
        assert (await client.get_position(), read_levels(board, "xy")) == (0, "10")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"pins": []}, "at least 1 item"),
        ({"pins": ["x"] * 2}, '"pins" names the same pin twice'),
        ({"pins": ["x"], "labels": ["a"]}, "there are 1 labels, but 2 positions"),
        ({"pins": ["x"], "position": 2}, "position 2 does not exist: the last one is 1"),
    ],
)
def test_invalid_attributes_are_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioSwitchAttributes.model_validate({"board": "pins", **attributes})
