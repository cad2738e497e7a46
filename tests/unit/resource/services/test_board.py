"""Differences between our board service and that of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpclib.const import Status
from tests.support.machine.served import refused, served
from viam.components.board import Board, Tick, TickStream
from viam.components.board.client import BoardClient
from viam.proto.component.board import (
    BoardServiceStub,
    PowerMode,
    SetPowerModeRequest,
    StreamTicksRequest,
)
from viam.streams import StreamWithIterator

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.board.fake import FakeBoard
from cogwork.graph.name import ResourceName
from cogwork.resource.messages.structs import to_struct

NAME = ResourceName.parse("rdk:component:board/b")
ATTRIBUTES = FakeBoardAttributes.model_validate(
    {"digital_interrupts": [{"name": "door", "pin": "11"}]}
)
REQUEST = StreamTicksRequest(name="b", pin_names=["door"], extra=to_struct({"edge": "rising"}))


class UnserializableTick:
    def SerializeToString(self) -> bytes:  # noqa: N802 - the name that protobuf messages use
        raise InvalidRequest("its time does not fit")


class TickingBoard(FakeBoard):
    """A board that yields preset ticks and then waits."""

    ticks: tuple[Any, ...] = ()

    async def stream_ticks(  # type: ignore[override]
        self, interrupts: list[Board.DigitalInterrupt], **options: Any
    ) -> TickStream:
        self.request_values = {"interrupts": [each.name for each in interrupts], **options}
        self.stream_closed = asyncio.Event()
        return StreamWithIterator(self._ticks())

    async def _ticks(self) -> AsyncIterator[Any]:
        try:
            for tick in self.ticks:
                yield tick
            await asyncio.Event().wait()
        finally:
            self.stream_closed.set()


async def make_board(*ticks: Any) -> TickingBoard:
    board = await TickingBoard.new(NAME, ATTRIBUTES, {})
    assert isinstance(board, TickingBoard)
    board.ticks = ticks
    return board


async def test_stream_ticks_passes_all_request_fields() -> None:
    board = await make_board(Tick(pin_name="door", high=True))
    async with (
        served(board) as channel,
        BoardServiceStub(channel).StreamTicks.open(timeout=10) as stream,
    ):
        await stream.send_message(REQUEST, end=True)
        assert await stream.recv_message() == Tick()
        tick = await stream.recv_message()
        await stream.cancel()
    assert tick == Tick(pin_name="door", high=True)
    assert board.request_values["interrupts"] == ["door"]
    assert board.request_values["extra"] == {"edge": "rising"}
    assert 0 < board.request_values["timeout"] <= 10


async def test_unserializable_tick_ends_the_call_with_an_error() -> None:
    board = await make_board(Tick(pin_name="door", high=True), UnserializableTick())
    received = []
    async with served(board) as channel:
        client = BoardClient("b", channel)
        door = await client.digital_interrupt_by_name("door")
        with refused() as error:
            async for tick in await client.stream_ticks([door]):
                received.append(tick.pin_name)
    assert received == ["", "door"]
    assert (error.status, error.words) == (Status.INVALID_ARGUMENT, "its time does not fit")
    assert board.stream_closed.is_set()


async def test_empty_message_is_sent_before_the_first_tick() -> None:
    board = await make_board()
    async with served(board) as channel, BoardServiceStub(channel).StreamTicks.open() as stream:
        await stream.send_message(REQUEST, end=True)
        assert await asyncio.wait_for(stream.recv_message(), 10) == Tick()
        await stream.cancel()
        await asyncio.wait_for(board.stream_closed.wait(), 10)


async def test_duration_that_is_too_long_is_refused() -> None:
    request = SetPowerModeRequest(name="b", power_mode=PowerMode.POWER_MODE_NORMAL)
    request.duration.seconds = 1 << 62
    async with served(await make_board()) as channel:
        with refused() as error:
            await BoardServiceStub(channel).SetPowerMode(request)
    assert error.status is Status.INVALID_ARGUMENT
    assert "the duration is invalid" in error.words
