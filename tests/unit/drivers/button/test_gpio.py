from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.machine.served import Serve
from tests.unit.drivers.gpio.wiring import BOARD, RecordingBoard
from viam.components.button.client import ButtonClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.button.attributes import GpioButtonAttributes
from cogwork.drivers.button.gpio import GpioButton
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:button/b")


async def create_button(board: RecordingBoard, clock: ManualClock, **attributes: Any) -> GpioButton:
    given = GpioButtonAttributes(board="pins", pin="p", **attributes)
    return await GpioButton.new(NAME, given, {BOARD: board}, clock)


async def test_push_holds_the_pin_for_the_duration(
    board: RecordingBoard, clock: ManualClock, serve: Serve
) -> None:
    async with serve(await create_button(board, clock, duration="300ms")) as channel:
        client = ButtonClient("b", channel)
        pushing = asyncio.ensure_future(client.push())
        async with asyncio.timeout(60):
            while not (await client.get_status())["is_pushed"]:
                pass
        assert board.level("p") == 1
        await clock.advance(0.29)
        assert board.level("p") == 1
        await clock.advance(0.01)
        await asyncio.wait_for(pushing, 10)
        assert board.level("p") == 0
        assert await client.get_status() == {"is_pushed": False, "pushes": 1}


async def test_concurrent_pushes_pulse_one_after_the_other(
    board: RecordingBoard, clock: ManualClock
) -> None:
    button = await create_button(board, clock)
    board.writes.clear()
    both = [asyncio.ensure_future(button.push()) for _ in range(2)]
    await clock.advance(1)
    await asyncio.gather(*both)
    assert [level for _, level in board.writes] == [1, 0, 1, 0]


@pytest.mark.parametrize("inverted", [False, True])
async def test_cancelled_push_releases_the_pin(
    board: RecordingBoard, clock: ManualClock, inverted: bool
) -> None:
    button = await create_button(board, clock, duration="1m", inverted=inverted)
    assert board.level("p") == inverted
    pushing = asyncio.ensure_future(button.push())
    await clock.advance(1)
    assert board.level("p") == (not inverted)
    pushing.cancel()
    await asyncio.wait([pushing])
    assert board.level("p") == inverted


async def test_close_releases_the_pin(board: RecordingBoard, clock: ManualClock) -> None:
    button = await create_button(board, clock)
    pin = await board.gpio_pin_by_name("p")
    await pin.set(True)
    await button.close()
    assert board.level("p") == 0
