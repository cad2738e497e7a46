from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import gpiozero
import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused, until
from viam.components.board import Tick
from viam.components.board.client import BoardClient
from viam.proto.component.board import PowerMode

from cogwork.core.errors import InvalidRequest, NotFound, SlowConsumer
from cogwork.drivers.board.attributes import GpioBoardAttributes
from cogwork.drivers.board.gpio import GpioBoard
from cogwork.drivers.board.tick_queue import MAX_PENDING
from cogwork.drivers.gpio.pin import PinFault
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:board/b")
ATTRIBUTES: dict[str, Any] = {
    "pin_factory": "mock",
    "digital_interrupts": [
        {"name": "door", "pin": "GPIO5", "pull": "up"},
        {"name": "wheel", "pin": "6"},
    ],
}


async def built(**attributes: Any) -> GpioBoard:
    return await GpioBoard.new(NAME, GpioBoardAttributes(**{**ATTRIBUTES, **attributes}), {})


@pytest.fixture
async def board() -> AsyncIterator[GpioBoard]:
    board = await built()
    yield board
    await board.close()


@pytest.fixture
async def client(board: GpioBoard, serve: Serve) -> AsyncIterator[BoardClient]:
    async with serve(board) as channel:
        yield BoardClient("b", channel)


def wire(board: GpioBoard, name: str) -> Any:
    """What is soldered to the pin sees."""
    return board._factory.pin(name)


@pytest.mark.parametrize("name", ["GPIO17", "gpio17", "17", " 17 ", "BOARD11", "J8:11", "BCM17"])
async def test_a_pin_has_all_the_names_that_people_use(
    client: BoardClient, board: GpioBoard, name: str
) -> None:
    await (await client.gpio_pin_by_name(name)).set(True)
    assert wire(board, "GPIO17").state == 1
    assert await (await client.gpio_pin_by_name("GPIO17")).get()


@pytest.mark.parametrize("name", ["", "99", "BOARD1", "5V", "GND", "pwm"])
async def test_a_pin_that_there_is_not(client: BoardClient, name: str) -> None:
    with refused() as told:
        await (await client.gpio_pin_by_name(name)).set(True)
    assert told.status is Status.NOT_FOUND
    assert told.words.startswith(f'board "b" has no GPIO pin "{name}": use GPIO17 or 17')


async def test_a_pin_that_nobody_set_is_an_input(client: BoardClient, board: GpioBoard) -> None:
    pin = await client.gpio_pin_by_name("22")
    assert not await pin.get()
    wire(board, "GPIO22").drive_high()
    assert await pin.get()
    assert wire(board, "GPIO22").function == "input"


async def test_pwm(client: BoardClient, board: GpioBoard) -> None:
    pin = await client.gpio_pin_by_name("18")
    await pin.set_pwm(0.25)
    assert (wire(board, "GPIO18").state, wire(board, "GPIO18").frequency) == (0.25, 1000)
    await pin.set_pwm_frequency(50)
    assert (wire(board, "GPIO18").state, wire(board, "GPIO18").frequency) == (0.25, 50)
    assert (await pin.get_pwm(), await pin.get_pwm_frequency()) == (0.25, 50)
    await pin.set_pwm_frequency(0)
    assert wire(board, "GPIO18").frequency == 1000
    await pin.set(True)
    assert (wire(board, "GPIO18").state, wire(board, "GPIO18").frequency) == (1, None)
    assert await pin.get_pwm() == 0
    await pin.set_pwm(0)
    assert (wire(board, "GPIO18").state, wire(board, "GPIO18").frequency) == (0, None)


async def test_pwm_that_cannot_be(client: BoardClient) -> None:
    pin = await client.gpio_pin_by_name("18")
    with refused() as told:
        await pin.set_pwm_frequency(20_000)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == ('pin "GPIO18" of board "b" supports PWM of up to 10000 Hz, not 20000 Hz')
    with refused() as told:
        await pin.set_pwm(float("nan"))
    assert told.words == 'pin "GPIO18" of board "b" accepts a duty cycle between 0 and 1, not nan'


async def test_closed_it_lets_its_outputs_go(board: GpioBoard) -> None:
    wires = [wire(board, name) for name in ("GPIO17", "GPIO18")]
    await (await board.gpio_pin_by_name("17")).set(True)
    await (await board.gpio_pin_by_name("18")).set_pwm(0.5)
    await board.close()
    assert [(each.function, float(each.state)) for each in wires] == [("input", 0.0)] * 2


async def test_the_common_factory_of_gpiozero_is_left_alone(board: GpioBoard) -> None:
    other = await built()
    try:
        await (await board.gpio_pin_by_name("17")).set(True)
        assert not await (await other.gpio_pin_by_name("17")).get()
        assert gpiozero.Device.pin_factory is None
    finally:
        await other.close()


async def value_of(client: BoardClient, interrupt: str) -> int:
    return await (await client.digital_interrupt_by_name(interrupt)).value()


async def test_an_interrupt_counts_how_often_its_pin_goes_high(
    client: BoardClient, board: GpioBoard
) -> None:
    """From a thread, as lgpio does it."""

    def push() -> None:
        for _ in range(3):
            wire(board, "GPIO5").drive_low()
            wire(board, "GPIO5").drive_high()

    await asyncio.to_thread(push)
    assert (await value_of(client, "door"), await value_of(client, "wheel")) == (3, 0)


async def test_what_interrupts_it_has(client: BoardClient, serve: Serve) -> None:
    with refused() as told:
        await value_of(client, "weel")
    assert (told.status, told.words) == (
        Status.NOT_FOUND,
        'board "b" has no digital interrupt "weel": did you mean "wheel"?',
    )
    with refused() as told:
        await value_of(client, "xyz")
    assert told.words == 'board "b" has no digital interrupt "xyz": it has door, wheel'


async def test_changes_are_streamed_with_the_kernels_times(
    client: BoardClient, board: GpioBoard
) -> None:
    async def read() -> list[Tick]:
        parts = [await client.digital_interrupt_by_name(name) for name in ("door", "wheel")]
        stream = aiter(await client.stream_ticks(parts))
        return [await anext(stream) for _ in range(3)]

    async def is_listened_to() -> bool:
        return (await client.get_status())["tick_streams"] == 1

    reading = asyncio.ensure_future(read())
    await until(is_listened_to)
    await client.do_command({"drive": {"GPIO5": False}})
    await client.do_command({"drive": {"BOARD31": True}})
    await client.do_command({"drive": {"5": True}})
    found = await asyncio.wait_for(reading, 10)
    assert [(tick.pin_name, tick.high) for tick in found] == [
        ("door", False),
        ("wheel", True),
        ("door", True),
    ]
    times = [tick.time for tick in found]
    assert times == sorted(times)
    assert times[-1] == int(wire(board, "GPIO5")._last_change * 1e9)


async def test_a_pin_that_flickers_fills_no_memory(board: GpioBoard) -> None:
    """The loop is busy meanwhile: nothing is taken away."""
    stream = await board.stream_ticks([await board.digital_interrupt_by_name("wheel")])
    flickers = MAX_PENDING

    def flicker() -> None:
        for _ in range(flickers):
            wire(board, "GPIO6").drive_high()
            wire(board, "GPIO6").drive_low()

    thread = threading.Thread(target=flicker)
    thread.start()
    thread.join()
    assert len(board._edge_queue._pending) == MAX_PENDING
    found = [await stream.next() for _ in range(MAX_PENDING)]
    assert [tick.high for tick in found] == [True, False] * (MAX_PENDING // 2)
    with pytest.raises(SlowConsumer, match=f"dropped {flickers} ticks"):
        await stream.next()
    assert await (await board.digital_interrupt_by_name("wheel")).value() == flickers


async def test_a_pin_that_is_watched_stays_an_input(client: BoardClient) -> None:
    for action in (
        (await client.gpio_pin_by_name("5")).set(False),
        (await client.gpio_pin_by_name("BOARD29")).set_pwm(0.5),
    ):
        with refused() as told:
            await action
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words == (
            'pin "GPIO5" of board "b" is watched by the digital interrupt "door" and must stay an '
            "input"
        )


@pytest.mark.parametrize(
    ("interrupt", "error", "words"),
    [
        ({"name": "x", "pin": "99"}, NotFound, 'no GPIO pin "99"'),
        ({"name": "x", "pin": "BOARD29"}, InvalidRequest, 'interrupts, "door" and "x"'),
        ({"name": "x", "pin": "2", "pull": "down"}, PinFault, 'pin "2" cannot be watched'),
    ],
)
async def test_interrupts_that_cannot_be(
    interrupt: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await built(digital_interrupts=[*ATTRIBUTES["digital_interrupts"], interrupt])


async def test_what_it_has_not(client: BoardClient) -> None:
    with refused() as told:
        await (await client.analog_by_name("a")).read()
    assert told.words == 'board "b" has no analog "a": this computer has no analog pins'
    with refused() as told:
        await client.set_power_mode(PowerMode.POWER_MODE_OFFLINE_DEEP)
    assert told.status is Status.UNIMPLEMENTED
    assert told.words == 'board "b" has no power modes: it is the server\'s own computer'


async def test_it_tells_about_itself(client: BoardClient) -> None:
    await (await client.gpio_pin_by_name("18")).set_pwm(0.5)
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "digital_interrupts": {"door": 0, "wheel": 0},
        "outputs": {"GPIO18": 0.5},
        "tick_streams": 0,
    }


async def test_outputs_cannot_be_driven_from_outside(client: BoardClient) -> None:
    await (await client.gpio_pin_by_name("17")).set(False)
    with refused() as told:
        await client.do_command({"drive": {"17": True}})
    assert told.words == 'pin "GPIO17" of board "b" is an output: use set instead'
    with refused() as told:
        await client.do_command({"dive": {"17": True}})
    assert told.status is Status.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "attributes",
    [
        {"pin_factory": "rpigpio"},
        {"digital_interrupts": [{"name": "a", "pin": "1", "pull": "sideways"}]},
        {"digital_interrupts": [{"name": "a", "pin": "1"}, {"name": "a", "pin": "2"}]},
    ],
)
def test_attributes_that_cannot_be(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GpioBoardAttributes.model_validate(attributes)
