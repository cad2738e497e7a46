from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, WatchedBoard
from viam.components.servo.client import ServoClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.servo.attributes import GpioServoAttributes
from cogwork.drivers.servo.gpio import GpioServo
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:servo/s")


async def built(board: WatchedBoard, clock: ManualClock, **attributes: Any) -> GpioServo:
    given = GpioServoAttributes(board="pins", pin="p", **attributes)
    return await GpioServo.new(NAME, given, {BOARD: board}, clock)


@pytest.fixture
async def client(
    board: WatchedBoard, clock: ManualClock, serve: Serve
) -> AsyncIterator[ServoClient]:
    async with serve(await built(board, clock)) as channel:
        yield ServoClient("s", channel)


def pulse(board: WatchedBoard) -> float:
    """In microseconds, at 50 Hz."""
    return board.level("p") * 20_000


async def test_an_angle_is_a_length_of_pulses(client: ServoClient, board: WatchedBoard) -> None:
    assert await (await board.gpio_pin_by_name("p")).get_pwm_frequency() == 50
    assert pulse(board) == pytest.approx(500)
    for angle, width in ((90, 1500), (180, 2500), (45, 1000), (1, 511.11), (0, 500)):
        await client.move(angle)
        assert pulse(board) == pytest.approx(width, abs=0.01)
        assert await client.get_position() == angle
        assert not await client.is_moving()


async def test_other_servos(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(
        board,
        clock,
        min_angle_deg=30,
        max_angle_deg=120,
        starting_position_deg=75,
        min_width_us=1000,
        max_width_us=2000,
        frequency_hz=100,
    )
    assert pulse(board) / 2 == pytest.approx(1500)
    await servo.move(120)
    assert pulse(board) / 2 == pytest.approx(2000)


async def test_beyond_its_range(client: ServoClient, board: WatchedBoard) -> None:
    with refused() as told:
        await client.move(181)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'servo "s" turns from 0 to 180 degrees, not to 181'
    assert pulse(board) == pytest.approx(500)


async def test_it_can_be_led_slowly(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(90))
    await clock.advance(1)
    assert pulse(board) == pytest.approx(1000, abs=23)
    assert await servo.is_moving()
    assert await servo.get_position() == 45
    await clock.advance(1)
    await moving
    assert pulse(board) == pytest.approx(1500)
    assert not await servo.is_moving()


async def test_stopped_it_holds_its_angle(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    await servo.stop()
    with pytest.raises(Interrupted, match="did not finish move: interrupted by stop"):
        await moving
    await clock.advance(5)
    assert pulse(board) == pytest.approx(1000)


async def test_a_cancelled_move_stops(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    moving.cancel()
    await asyncio.wait([moving])
    assert not await servo.is_moving()
    await clock.advance(5)
    assert pulse(board) == pytest.approx(1000, abs=23)


async def test_a_newer_move_leads_it_elsewhere(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(board, clock, degrees_per_second=45)
    older = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    newer = asyncio.ensure_future(servo.move(0))
    await clock.advance(1)
    with pytest.raises(Interrupted, match="interrupted by move"):
        await older
    await newer
    assert pulse(board) == pytest.approx(500)


async def begun(move: Awaitable[None]) -> asyncio.Future[None]:
    """As far as it gets without an answer of its pin."""
    moving = asyncio.ensure_future(move)
    for _ in range(20):
        await asyncio.sleep(0)
    return moving


async def test_of_two_at_once_it_points_where_the_newer_sent_it(
    board: WatchedBoard, clock: ManualClock
) -> None:
    """And not where a pin that was slow to answer took it."""
    servo = await built(board, clock)
    gate = board.gates["p"] = asyncio.Event()
    older = await begun(servo.move(45))
    board.gates.clear()
    newer = await begun(servo.move(180))
    gate.set()
    await asyncio.wait_for(newer, 10)
    with pytest.raises(Interrupted, match="did not finish move: interrupted by move"):
        await older
    assert pulse(board) == pytest.approx(2500)
    assert await servo.get_position() == 180


async def test_it_reports_no_angle_that_its_pin_was_not_set_to(
    board: WatchedBoard, clock: ManualClock
) -> None:
    servo = await built(board, clock)
    await servo.move(90)
    board.gates["p"] = asyncio.Event()
    move = await begun(servo.move(180))
    assert await servo.get_position() == 90
    move.cancel()
    await asyncio.wait([move])
    assert await servo.get_position() == 90
    board.gates.clear()
    board.broken = "p"
    with pytest.raises(OSError, match="loose"):
        await servo.move(0)
    assert await servo.get_position() == 90
    assert pulse(board) == pytest.approx(1500)


async def test_closed_no_older_move_takes_hold_of_it_again(
    board: WatchedBoard, clock: ManualClock
) -> None:
    servo = await built(board, clock)
    gate = board.gates["p"] = asyncio.Event()
    moves = [await begun(servo.move(angle)) for angle in (45, 90)]
    board.gates.clear()
    closing = await begun(servo.close())
    gate.set()
    await asyncio.wait_for(closing, 10)
    for move in moves:
        with pytest.raises(Interrupted):
            await move
    assert pulse(board) == 0


async def test_closed_it_lets_go(board: WatchedBoard, clock: ManualClock) -> None:
    servo = await built(board, clock)
    await servo.close()
    assert pulse(board) == 0


async def test_it_tells_about_itself(client: ServoClient) -> None:
    await client.move(90)
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "position_deg": 90,
        "is_moving": False,
        "pulse_us": 1500,
    }


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"min_angle_deg": 90, "max_angle_deg": 90}, "is not less than"),
        ({"starting_position_deg": 181}, '"starting_position_deg" 181 is not between'),
        ({"min_width_us": 3000}, '"min_width_us" is not less'),
        ({"frequency_hz": 400}, "400 pulses of 2500 us do not fit into a second"),
        ({"pin": ""}, "at least 1 character"),
    ],
)
def test_attributes_that_cannot_be(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioServoAttributes.model_validate({"board": "pins", "pin": "p", **attributes})
