from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from viam.components.board import Tick
from viam.components.board.client import BoardClient
from viam.proto.component.board import PowerMode

from cogwork.core.clock import ManualClock
from cogwork.core.errors import SlowConsumer
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.board.fake import FakeBoard
from cogwork.drivers.board.tick_queue import MAX_PENDING
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:board/b")
ATTRIBUTES = {
    "analogs": [
        {"name": "joystick", "pin": "3", "value": 7, "min": -1, "max": 3.5, "step_size": 0.5},
        {"name": "battery"},
    ],
    "digital_interrupts": [
        {"name": "door", "pin": "11"},
        {"name": "door-too", "pin": "11"},
        {"name": "wheel", "pin": "13"},
    ],
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start=5.0)


@pytest.fixture
async def board(clock: ManualClock) -> FakeBoard:
    return await FakeBoard.new(NAME, FakeBoardAttributes.model_validate(ATTRIBUTES), {}, clock)


@pytest.fixture
async def client(board: FakeBoard, serve: Serve) -> AsyncIterator[BoardClient]:
    async with serve(board) as channel:
        yield BoardClient("b", channel)


async def set_pin(client: BoardClient, name: str, *levels: bool) -> None:
    pin = await client.gpio_pin_by_name(name)
    for high in levels:
        await pin.set(high)


async def test_pin_keeps_its_level(client: BoardClient) -> None:
    pin = await client.gpio_pin_by_name("37")
    assert not await pin.get()
    await pin.set(True)
    assert await pin.get()
    assert not await (await client.gpio_pin_by_name("38")).get()


async def test_pin_keeps_its_pwm_duty_cycle_and_frequency(client: BoardClient) -> None:
    pin = await client.gpio_pin_by_name("37")
    await pin.set_pwm(0.25)
    await pin.set_pwm_frequency(1600)
    assert (await pin.get_pwm(), await pin.get_pwm_frequency()) == (0.25, 1600)
    await pin.set(False)
    assert (await pin.get_pwm(), await pin.get_pwm_frequency()) == (0, 1600)


async def test_duty_cycle_above_1_is_refused(client: BoardClient) -> None:
    pin = await client.gpio_pin_by_name("37")
    with refused() as told:
        await pin.set_pwm(1.5)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'pin "37" accepts a duty cycle between 0 and 1, not 1.5'


async def test_analog_reads_back_the_written_value(client: BoardClient) -> None:
    analog = await client.analog_by_name("joystick")
    first = await analog.read()
    assert (first.value, first.min_range, first.max_range, first.step_size) == (7, -1, 3.5, 0.5)
    await analog.write(-42)
    assert (await analog.read()).value == -42
    assert (await (await client.analog_by_name("battery")).read()).value == 0


async def read_interrupt(client: BoardClient, interrupt: str) -> int:
    return await (await client.digital_interrupt_by_name(interrupt)).value()


async def test_interrupt_counts_rising_edges(client: BoardClient) -> None:
    await set_pin(client, "11", True, True, False, False, True)
    assert await read_interrupt(client, "door") == 2
    assert await read_interrupt(client, "door-too") == 2
    assert await read_interrupt(client, "wheel") == 0


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda c: c.analog_by_name("joystik"), 'no analog "joystik": did you mean "joystick"?'),
        (lambda c: c.analog_by_name("xyz"), 'no analog "xyz": it has battery, joystick'),
        (
            lambda c: c.digital_interrupt_by_name("weel"),
            'no digital interrupt "weel": did you mean "wheel"?',
        ),
    ],
)
async def test_unknown_names_are_refused_with_suggestions(
    client: BoardClient, ask: Callable[[BoardClient], Awaitable[object]], words: str
) -> None:
    part = await ask(client)
    with refused() as told:
        await getattr(part, "read" if "analog" in words else "value")()
    assert (told.status, told.words) == (Status.NOT_FOUND, f'board "b" has {words}')


async def test_unknown_analog_is_refused_on_a_board_without_analogs(serve: Serve) -> None:
    async with serve(await FakeBoard.new(NAME, FakeBoardAttributes(), {})) as channel:
        with refused() as told:
            await (await BoardClient("b", channel).analog_by_name("a")).write(1)
    assert told.words == 'board "b" has no analog "a": it has none'


async def read_ticks(client: BoardClient, *interrupts: str, count: int) -> list[Tick]:
    parts = [await client.digital_interrupt_by_name(name) for name in interrupts]
    found = []
    async for tick in await client.stream_ticks(parts):
        found.append(tick)
        if len(found) > count:
            break
    assert found[0] == Tick()  # the stream is open
    return found[1:]


def has_streams(client: BoardClient, number: int) -> Callable[[], Awaitable[bool]]:
    async def has_count() -> bool:
        return (await client.get_status())["tick_streams"] == number

    return has_count


async def test_stream_ticks_reports_level_changes(client: BoardClient, clock: ManualClock) -> None:
    reading = asyncio.ensure_future(read_ticks(client, "door", "wheel", count=3))
    await poll(has_streams(client, 1))
    await set_pin(client, "11", True)
    await clock.advance(0.25)
    await set_pin(client, "99", True)
    await set_pin(client, "13", True)
    await set_pin(client, "11", True, False)
    found = await asyncio.wait_for(reading, 10)
    assert [(tick.pin_name, tick.high, tick.time) for tick in found] == [
        ("door", True, 5_000_000_000),
        ("wheel", True, 5_250_000_000),
        ("door", False, 5_250_000_000),
    ]


async def test_cancelled_tick_stream_is_removed(client: BoardClient) -> None:
    reading = asyncio.ensure_future(read_ticks(client, "door", count=2))
    await poll(has_streams(client, 1))
    reading.cancel()
    await poll(has_streams(client, 0))
    await asyncio.wait([reading])


async def test_every_tick_stream_gets_every_tick(client: BoardClient) -> None:
    readers = [asyncio.ensure_future(read_ticks(client, "wheel", count=2)) for _ in range(3)]
    await poll(has_streams(client, 3))
    await set_pin(client, "13", True, False)
    for found in await asyncio.wait_for(asyncio.gather(*readers), 10):
        assert [tick.high for tick in found] == [True, False]


async def test_stream_ticks_refuses_an_unknown_interrupt(client: BoardClient) -> None:
    with refused() as told:
        await read_ticks(client, "dor", count=1)
    assert told.status is Status.NOT_FOUND
    assert told.words == 'board "b" has no digital interrupt "dor": did you mean "door"?'


async def test_close_ends_the_streams(client: BoardClient, board: FakeBoard) -> None:
    reading = asyncio.ensure_future(read_ticks(client, "door", count=2))
    await poll(has_streams(client, 1))
    await board.close()
    with refused() as told:
        await asyncio.wait_for(reading, 10)
    assert (told.status, told.words) == (Status.ABORTED, 'board "b" was closed')


async def test_power_mode_reverts_after_its_duration(
    client: BoardClient, clock: ManualClock
) -> None:
    async def read_mode() -> object:
        return (await client.get_status())["power_mode"]

    await client.set_power_mode(PowerMode.POWER_MODE_OFFLINE_DEEP, timedelta(seconds=2))
    assert await read_mode() == "POWER_MODE_OFFLINE_DEEP"
    await clock.advance(2)
    assert await read_mode() == "POWER_MODE_NORMAL"
    await client.set_power_mode(PowerMode.POWER_MODE_OFFLINE_DEEP)
    await clock.advance(1e6)
    assert await read_mode() == "POWER_MODE_OFFLINE_DEEP"
    with refused() as told:
        await client.set_power_mode(PowerMode.POWER_MODE_UNSPECIFIED)
    assert told.status is Status.INVALID_ARGUMENT


async def test_status_of_the_board(client: BoardClient) -> None:
    await set_pin(client, "11", True)
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "analogs": {"joystick": 7, "battery": 0},
        "digital_interrupts": {"door": 1, "door-too": 1, "wheel": 0},
        "pins_high": ["11"],
        "power_mode": "POWER_MODE_NORMAL",
        "tick_streams": 0,
    }


@pytest.mark.parametrize(
    "attributes",
    [
        {"analogs": [{"name": "a"}, {"name": "a"}]},
        {"digital_interrupts": [{"name": "a", "pin": "1"}, {"name": "a", "pin": "2"}]},
        {"digital_interrupts": [{"name": "a"}]},
        {"analogs": [{"name": ""}]},
        {"analogs": [{"name": "a", "value": 2**31}]},
    ],
)
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeBoardAttributes.model_validate(attributes)


async def test_slow_tick_reader_gets_slow_consumer_error(board: FakeBoard) -> None:
    """A slow reader neither exhausts memory nor loses a tick silently."""
    stream = await board.stream_ticks([await board.digital_interrupt_by_name("door")])
    pin = await board.gpio_pin_by_name("11")
    for number in range(MAX_PENDING + 10):
        await pin.set(number % 2 == 0)
    found = [await stream.next() for _ in range(MAX_PENDING)]
    assert [tick.high for tick in found] == [True, False] * (MAX_PENDING // 2)
    with pytest.raises(SlowConsumer, match="1024 ticks were waiting to be read"):
        await stream.next()
