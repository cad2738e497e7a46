from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import run_others
from tests.unit.drivers.gpio.wiring import BOARD, RecordingBoard
from viam.components.servo.client import ServoClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.servo.attributes import GpioServoAttributes
from cogwork.drivers.servo.gpio import GpioServo
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:servo/s")


async def create_servo(board: RecordingBoard, clock: ManualClock, **attributes: Any) -> GpioServo:
    given = GpioServoAttributes(board="pins", pin="p", **attributes)
    return await GpioServo.new(NAME, given, {BOARD: board}, clock)


@pytest.fixture
async def client(
    board: RecordingBoard, clock: ManualClock, serve: Serve
) -> AsyncIterator[ServoClient]:
    async with serve(await create_servo(board, clock)) as channel:
        yield ServoClient("s", channel)


def pulse_width(board: RecordingBoard) -> float:
    """Return the pulse width in microseconds, at 50 Hz."""
    return board.level("p") * 20_000


async def test_angle_determines_the_pulse_width(client: ServoClient, board: RecordingBoard) -> None:
    assert await (await board.gpio_pin_by_name("p")).get_pwm_frequency() == 50
    assert pulse_width(board) == pytest.approx(500)
    for angle, width in ((90, 1500), (180, 2500), (45, 1000), (1, 511.11), (0, 500)):
        await client.move(angle)
        assert pulse_width(board) == pytest.approx(width, abs=0.01)
        assert await client.get_position() == angle
        assert not await client.is_moving()


async def test_range_widths_and_frequency_are_configurable(
    board: RecordingBoard, clock: ManualClock
) -> None:
    servo = await create_servo(
        board,
        clock,
        min_angle_deg=30,
        max_angle_deg=120,
        starting_position_deg=75,
        min_width_us=1000,
        max_width_us=2000,
        frequency_hz=100,
    )
    assert pulse_width(board) / 2 == pytest.approx(1500)
    await servo.move(120)
    assert pulse_width(board) / 2 == pytest.approx(2000)


async def test_angle_outside_the_range_is_refused(
    client: ServoClient, board: RecordingBoard
) -> None:
    with refused() as told:
        await client.move(181)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'servo "s" turns from 0 to 180 degrees, not to 181'
    assert pulse_width(board) == pytest.approx(500)


async def test_degrees_per_second_limits_the_speed(
    board: RecordingBoard, clock: ManualClock
) -> None:
    servo = await create_servo(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(90))
    await clock.advance(1)
    assert pulse_width(board) == pytest.approx(1000, abs=23)
    assert await servo.is_moving()
    assert await servo.get_position() == 45
    await clock.advance(1)
    await moving
    assert pulse_width(board) == pytest.approx(1500)
    assert not await servo.is_moving()


async def test_stop_holds_the_angle(board: RecordingBoard, clock: ManualClock) -> None:
    servo = await create_servo(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    await servo.stop()
    with pytest.raises(Interrupted, match="did not finish move: interrupted by stop"):
        await moving
    await clock.advance(5)
    assert pulse_width(board) == pytest.approx(1000)


async def test_cancelled_move_stops(board: RecordingBoard, clock: ManualClock) -> None:
    servo = await create_servo(board, clock, degrees_per_second=45)
    moving = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    moving.cancel()
    await asyncio.wait([moving])
    assert not await servo.is_moving()
    await clock.advance(5)
    assert pulse_width(board) == pytest.approx(1000, abs=23)


async def test_newer_move_interrupts_the_older_one(
    board: RecordingBoard, clock: ManualClock
) -> None:
    servo = await create_servo(board, clock, degrees_per_second=45)
    older = asyncio.ensure_future(servo.move(180))
    await clock.advance(1)
    newer = asyncio.ensure_future(servo.move(0))
    await clock.advance(1)
    with pytest.raises(Interrupted, match="interrupted by move"):
        await older
    await newer
    assert pulse_width(board) == pytest.approx(500)


async def start_without_answer(move: Awaitable[None]) -> asyncio.Future[None]:
    """Start the move and let it run until it waits for its pin."""
    moving = asyncio.ensure_future(move)
    await run_others(20)
    return moving


async def test_newer_of_two_concurrent_moves_determines_the_angle(
    board: RecordingBoard, clock: ManualClock
) -> None:
    """A slow answer of the pin to the older move does not override it."""
    servo = await create_servo(board, clock)
    gate = board.gates["p"] = asyncio.Event()
    older = await start_without_answer(servo.move(45))
    board.gates.clear()
    newer = await start_without_answer(servo.move(180))
    gate.set()
    await asyncio.wait_for(newer, 10)
    with pytest.raises(Interrupted, match="did not finish move: interrupted by move"):
        await older
    assert pulse_width(board) == pytest.approx(2500)
    assert await servo.get_position() == 180


async def test_position_is_only_what_the_pin_was_set_to(
    board: RecordingBoard, clock: ManualClock
) -> None:
    servo = await create_servo(board, clock)
    await servo.move(90)
    board.gates["p"] = asyncio.Event()
    move = await start_without_answer(servo.move(180))
    assert await servo.get_position() == 90
    move.cancel()
    await asyncio.wait([move])
    assert await servo.get_position() == 90
    board.gates.clear()
    board.broken = "p"
    with pytest.raises(OSError, match="loose"):
        await servo.move(0)
    assert await servo.get_position() == 90
    assert pulse_width(board) == pytest.approx(1500)


async def test_pending_moves_do_not_power_the_servo_after_close(
    board: RecordingBoard, clock: ManualClock
) -> None:
    servo = await create_servo(board, clock)
    gate = board.gates["p"] = asyncio.Event()
    moves = [await start_without_answer(servo.move(angle)) for angle in (45, 90)]
    board.gates.clear()
    closing = await start_without_answer(servo.close())
    gate.set()
    await asyncio.wait_for(closing, 10)
    for move in moves:
        with pytest.raises(Interrupted):
            await move
    assert pulse_width(board) == 0


async def test_close_releases_the_servo(board: RecordingBoard, clock: ManualClock) -> None:
    servo = await create_servo(board, clock)
    await servo.close()
    assert pulse_width(board) == 0


async def test_status_of_the_servo(client: ServoClient) -> None:
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
def test_invalid_attributes_are_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioServoAttributes.model_validate({"board": "pins", "pin": "p", **attributes})
