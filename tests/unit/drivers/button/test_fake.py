from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError
from tests.support.machine.served import Serve
from tests.support.waiting import advance_until, poll, run_others
from viam.components.button.client import ButtonClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.board.fake import FakeBoard
from cogwork.drivers.button.attributes import FakeButtonAttributes
from cogwork.drivers.button.fake import FakeButton
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:button/b")
BOARD = ResourceName.parse("rdk:component:board/pi")


async def test_status_counts_pushes(serve: Serve) -> None:
    button = await FakeButton.new(NAME, FakeButtonAttributes(), {}, ManualClock(1_700_000_000))
    async with serve(button) as channel:
        client = ButtonClient("b", channel)
        assert await client.get_status() == {"pushes": 0}
        await client.push()
        await client.push()
        assert await client.get_status() == {
            "pushes": 2,
            "last_push": "2023-11-14T22:13:20+00:00",
        }


@pytest.fixture
async def board() -> FakeBoard:
    interrupt = {"name": "pulses", "pin": "7"}
    attributes = FakeBoardAttributes.model_validate({"digital_interrupts": [interrupt]})
    return await FakeBoard.new(BOARD, attributes, {})


async def create_button_on(board: FakeBoard, clock: ManualClock) -> FakeButton:
    attributes = FakeButtonAttributes.model_validate({"board": "pi", "pin": "7", "pulse": "200ms"})
    return await FakeButton.new(NAME, attributes, {BOARD: board}, clock)


async def test_push_pulses_the_pin(board: FakeBoard, serve: Serve) -> None:
    clock = ManualClock()
    pin = await board.gpio_pin_by_name("7")
    async with serve(await create_button_on(board, clock)) as channel:
        client = ButtonClient("b", channel)
        pushing = asyncio.gather(client.push(), client.push())

        async def is_high() -> bool:
            await client.get_status()
            return pin.high

        await poll(is_high)
        await clock.advance(0.19)
        assert await pin.get()

        await advance_until(clock, pushing.done, 0.1)  # the second call may arrive at any time
        await pushing
    assert not await pin.get()
    assert await (await board.digital_interrupt_by_name("pulses")).value() == 2


async def test_cancelled_push_sets_the_pin_low(board: FakeBoard) -> None:
    button = await create_button_on(board, ManualClock())
    pin = await board.gpio_pin_by_name("7")
    pushing = asyncio.ensure_future(button.push())
    await run_others()
    assert await pin.get()
    pushing.cancel()
    await asyncio.wait([pushing])
    assert not await pin.get()


@pytest.mark.parametrize("attributes", [{"board": "pi"}, {"pin": "7"}, {"pulse": "0s"}])
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeButtonAttributes.model_validate(attributes)
