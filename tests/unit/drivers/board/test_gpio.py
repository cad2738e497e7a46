from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import gpiozero
import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
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


async def create_board(**attributes: Any) -> GpioBoard:
    return await GpioBoard.new(NAME, GpioBoardAttributes(**{**ATTRIBUTES, **attributes}), {})


@pytest.fixture
async def board() -> AsyncIterator[GpioBoard]:
    board = await create_board()
    yield board
    await board.close()


@pytest.fixture
async def client(board: GpioBoard, serve: Serve) -> AsyncIterator[BoardClient]:
    async with serve(board) as channel:
        yield BoardClient("b", channel)


def mock_pin(board: GpioBoard, name: str) -> Any:
    """Return the mock pin as connected hardware sees it."""
    return board._factory.pin(name)


@pytest.mark.parametrize("name", ["GPIO17", "gpio17", "17", " 17 ", "BOARD11", "J8:11", "BCM17"])
async def test_pin_is_found_by_all_common_names(
    client: BoardClient, board: GpioBoard, name: str
) -> None:
    await (await client.gpio_pin_by_name(name)).set(True)
    assert mock_pin(board, "GPIO17").state == 1
    assert await (await client.gpio_pin_by_name("GPIO17")).get()


@pytest.mark.parametrize("name", ["", "99", "BOARD1", "5V", "GND", "pwm"])
async def test_unknown_pin_is_refused(client: BoardClient, name: str) -> None:
    with refused() as told:
        await (await client.gpio_pin_by_name(name)).set(True)
    assert told.status is Status.NOT_FOUND
    assert told.words.startswith(f'board "b" has no GPIO pin "{name}": use GPIO17 or 17')


async def test_unset_pin_is_an_input(client: BoardClient, board: GpioBoard) -> None:
    pin = await client.gpio_pin_by_name("22")
    assert not await pin.get()
    mock_pin(board, "GPIO22").drive_high()
    assert await pin.get()
    assert mock_pin(board, "GPIO22").function == "input"


async def test_pwm_duty_cycle_and_frequency_reach_the_pin(
    client: BoardClient, board: GpioBoard
) -> None:
    pin = await client.gpio_pin_by_name("18")
    await pin.set_pwm(0.25)
    assert (mock_pin(board, "GPIO18").state, mock_pin(board, "GPIO18").frequency) == (0.25, 1000)
    await pin.set_pwm_frequency(50)
    assert (mock_pin(board, "GPIO18").state, mock_pin(board, "GPIO18").frequency) == (0.25, 50)
    assert (await pin.get_pwm(), await pin.get_pwm_frequency()) == (0.25, 50)
    await pin.set_pwm_frequency(0)
    assert mock_pin(board, "GPIO18").frequency == 1000
    await pin.set(True)
    assert (mock_pin(board, "GPIO18").state, mock_pin(board, "GPIO18").frequency) == (1, None)
    assert await pin.get_pwm() == 0
    await pin.set_pwm(0)
    assert (mock_pin(board, "GPIO18").state, mock_pin(board, "GPIO18").frequency) == (0, None)


async def test_invalid_pwm_is_refused(client: BoardClient) -> None:
    pin = await client.gpio_pin_by_name("18")
    with refused() as told:
        await pin.set_pwm_frequency(20_000)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == ('pin "GPIO18" of board "b" supports PWM of up to 10000 Hz, not 20000 Hz')
    with refused() as told:
        await pin.set_pwm(float("nan"))
    assert told.words == 'pin "GPIO18" of board "b" accepts a duty cycle between 0 and 1, not nan'


async def test_close_releases_the_outputs(board: GpioBoard) -> None:
    wires = [mock_pin(board, name) for name in ("GPIO17", "GPIO18")]
    await (await board.gpio_pin_by_name("17")).set(True)
    await (await board.gpio_pin_by_name("18")).set_pwm(0.5)
    await board.close()
    assert [(each.function, float(each.state)) for each in wires] == [("input", 0.0)] * 2


async def test_global_pin_factory_of_gpiozero_is_not_used(board: GpioBoard) -> None:
    other = await create_board()
    try:
        await (await board.gpio_pin_by_name("17")).set(True)
        assert not await (await other.gpio_pin_by_name("17")).get()
        assert gpiozero.Device.pin_factory is None
    finally:
        await other.close()


async def read_interrupt(client: BoardClient, interrupt: str) -> int:
    return await (await client.digital_interrupt_by_name(interrupt)).value()


async def test_interrupt_counts_rising_edges(client: BoardClient, board: GpioBoard) -> None:
    """The edges come from a thread, as lgpio reports them."""

    def push() -> None:
        for _ in range(3):
            mock_pin(board, "GPIO5").drive_low()
            mock_pin(board, "GPIO5").drive_high()

    await asyncio.to_thread(push)
    assert (await read_interrupt(client, "door"), await read_interrupt(client, "wheel")) == (3, 0)


async def test_unknown_interrupt_is_refused_with_suggestions(
    client: BoardClient, serve: Serve
) -> None:
    with refused() as told:
        await read_interrupt(client, "weel")
    assert (told.status, told.words) == (
        Status.NOT_FOUND,
        'board "b" has no digital interrupt "weel": did you mean "wheel"?',
    )
    with refused() as told:
        await read_interrupt(client, "xyz")
    assert told.words == 'board "b" has no digital interrupt "xyz": it has door, wheel'


async def test_stream_ticks_reports_edges_with_kernel_timestamps(
    client: BoardClient, board: GpioBoard
) -> None:
    async def read() -> list[Tick]:
        parts = [await client.digital_interrupt_by_name(name) for name in ("door", "wheel")]
        stream = aiter(await client.stream_ticks(parts))
        assert await anext(stream) == Tick()  # the stream is open
        return [await anext(stream) for _ in range(3)]

    async def has_stream() -> bool:
        return (await client.get_status())["tick_streams"] == 1

    reading = asyncio.ensure_future(read())
    await poll(has_stream)
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
    assert times[-1] == int(mock_pin(board, "GPIO5")._last_change * 1e9)


async def test_flickering_pin_fills_a_bounded_queue(board: GpioBoard) -> None:
    """The event loop is blocked meanwhile, so nothing is consumed."""
    stream = await board.stream_ticks([await board.digital_interrupt_by_name("wheel")])
    flickers = MAX_PENDING

    def flicker() -> None:
        for _ in range(flickers):
            mock_pin(board, "GPIO6").drive_high()
            mock_pin(board, "GPIO6").drive_low()

    thread = threading.Thread(target=flicker)
    thread.start()
    thread.join()
    assert len(board._edge_queue._pending) == MAX_PENDING
    found = [await stream.next() for _ in range(MAX_PENDING)]
    assert [tick.high for tick in found] == [True, False] * (MAX_PENDING // 2)
    with pytest.raises(SlowConsumer, match=f"dropped {flickers} ticks"):
        await stream.next()
    assert await (await board.digital_interrupt_by_name("wheel")).value() == flickers


async def test_watched_pin_cannot_become_an_output(client: BoardClient) -> None:
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
async def test_invalid_interrupts_are_refused(
    interrupt: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await create_board(digital_interrupts=[*ATTRIBUTES["digital_interrupts"], interrupt])


async def test_analogs_and_power_modes_are_unsupported(client: BoardClient) -> None:
    with refused() as told:
        await (await client.analog_by_name("a")).read()
    assert told.words == 'board "b" has no analog "a": this computer has no analog pins'
    with refused() as told:
        await client.set_power_mode(PowerMode.POWER_MODE_OFFLINE_DEEP)
    assert told.status is Status.UNIMPLEMENTED
    assert told.words == (
        'board "b" does not support power modes: its pins belong to the server\'s own computer'
    )


async def test_status_of_the_board(client: BoardClient) -> None:
    await (await client.gpio_pin_by_name("18")).set_pwm(0.5)
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "digital_interrupts": {"door": 0, "wheel": 0},
        "outputs": {"GPIO18": 0.5},
        "tick_streams": 0,
    }


async def test_drive_command_refuses_outputs(client: BoardClient) -> None:
    await (await client.gpio_pin_by_name("17")).set(False)
    with refused() as told:
        await client.do_command({"drive": {"17": True}})
    assert told.words == (
        'pin "GPIO17" of board "b" is an output, and "drive" only simulates inputs: '
        "set the pin instead"
    )
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
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GpioBoardAttributes.model_validate(attributes)
