"""What the SDK's own service of this API would do otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpclib.const import Status
from tests.served import refused, served
from viam.components.board import Board, Tick, TickStream
from viam.components.board.client import BoardClient
from viam.proto.component.board import BoardServiceStub, StreamTicksRequest
from viam.streams import StreamWithIterator

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.board.fake import FakeBoard
from cogwork.graph.name import ResourceName
from cogwork.resource.structs import to_struct

NAME = ResourceName.parse("rdk:component:board/b")
ATTRIBUTES = FakeBoardAttributes.model_validate(
    {"digital_interrupts": [{"name": "door", "pin": "11"}]}
)
REQUEST = StreamTicksRequest(name="b", pin_names=["door"], extra=to_struct({"edge": "rising"}))


class Unsendable:
    def SerializeToString(self) -> bytes:  # noqa: N802 - as messages have it
        raise InvalidRequest("its time does not fit")


class Ticking(FakeBoard):
    """Gives what it is made to give, and then nothing."""

    gives: tuple[Any, ...] = ()

    async def stream_ticks(  # type: ignore[override]
        self, interrupts: list[Board.DigitalInterrupt], **told: Any
    ) -> TickStream:
        self.asked = {"interrupts": [each.name for each in interrupts], **told}
        self.left = asyncio.Event()
        return StreamWithIterator(self._ticks())

    async def _ticks(self) -> AsyncIterator[Any]:
        try:
            for tick in self.gives:
                yield tick
            await asyncio.Event().wait()
        finally:
            self.left.set()


async def ticking(*gives: Any) -> Ticking:
    board = await Ticking.new(NAME, ATTRIBUTES, {})
    assert isinstance(board, Ticking)
    board.gives = gives
    return board


async def test_a_board_hears_all_of_the_question() -> None:
    board = await ticking(Tick(pin_name="door", high=True))
    async with (
        served(board) as channel,
        BoardServiceStub(channel).StreamTicks.open(timeout=10) as stream,
    ):
        await stream.send_message(REQUEST, end=True)
        tick = await stream.recv_message()
        await stream.cancel()
    assert tick == Tick(pin_name="door", high=True)
    assert board.asked["interrupts"] == ["door"]
    assert board.asked["extra"] == {"edge": "rising"}
    assert 0 < board.asked["timeout"] <= 10


async def test_a_tick_that_cannot_be_sent_ends_the_call_with_an_error() -> None:
    board = await ticking(Tick(pin_name="door", high=True), Unsendable())
    heard = []
    async with served(board) as channel:
        client = BoardClient("b", channel)
        door = await client.digital_interrupt_by_name("door")
        with refused() as told:
            async for tick in await client.stream_ticks([door]):
                heard.append(tick.pin_name)
    assert heard == ["door"]
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, "its time does not fit")
    assert board.left.is_set()


async def test_whoever_listens_is_told_before_the_first_tick() -> None:
    board = await ticking()
    async with served(board) as channel, BoardServiceStub(channel).StreamTicks.open() as stream:
        await stream.send_message(REQUEST, end=True)
        await asyncio.wait_for(stream.recv_initial_metadata(), 10)
        await stream.cancel()
        await asyncio.wait_for(board.left.wait(), 10)
