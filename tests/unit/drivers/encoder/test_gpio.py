from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from itertools import accumulate, pairwise

import pytest
from grpclib.const import Status
from hypothesis import given
from hypothesis import strategies as st
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, RecordingBoard
from viam.components.board.client import BoardClient
from viam.components.encoder.client import EncoderClient
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import ManualClock
from cogwork.core.errors import NotFound
from cogwork.drivers.encoder.attributes import (
    IncrementalEncoderAttributes,
    SingleEncoderAttributes,
)
from cogwork.drivers.encoder.gpio import GpioEncoder
from cogwork.drivers.encoder.gpio_incremental import IncrementalEncoder
from cogwork.drivers.encoder.gpio_quadrature import QuadratureDecoder
from cogwork.drivers.encoder.gpio_single import SingleEncoder
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:encoder/e")
INCREMENTAL = {"board": "pins", "pins": {"a": "a", "b": "b"}}
SINGLE = {"board": "pins", "pins": {"i": "a"}}
FORWARD = [("1", True), ("2", True), ("1", False), ("2", False)]
"""One pulse of both signals: `a` on pin 1 leads."""


@pytest.fixture
async def encoder(board: RecordingBoard, clock: ManualClock) -> AsyncIterator[IncrementalEncoder]:
    attributes = IncrementalEncoderAttributes.model_validate(INCREMENTAL)
    encoder = await IncrementalEncoder.new(NAME, attributes, {BOARD: board}, clock)
    yield encoder
    await encoder.close()


@pytest.fixture
async def client(encoder: IncrementalEncoder, serve: Serve) -> AsyncIterator[EncoderClient]:
    async with serve(encoder) as channel:
        yield EncoderClient("e", channel)


async def play_edges(
    board: RecordingBoard, clock: ManualClock, edges: Sequence[tuple[str, bool]]
) -> None:
    for pin, high in edges:
        await (await board.gpio_pin_by_name(pin)).set(high)
    await clock.settle()


async def read_ticks(encoder: GpioEncoder) -> float:
    return (await encoder.get_position())[0]


async def test_incremental_encoder_counts_every_edge_in_both_directions(
    client: EncoderClient, board: RecordingBoard, clock: ManualClock
) -> None:
    await play_edges(board, clock, FORWARD)
    await client.reset_position()
    await play_edges(board, clock, FORWARD * 3)
    assert await client.get_position() == (12, PositionType.POSITION_TYPE_TICKS_COUNT)
    backward = [("2", True), ("1", True), ("2", False), ("1", False)]
    await play_edges(board, clock, backward * 5)
    assert (await client.get_position())[0] == -8
    assert (await client.get_status()) == {"ticks": -8, "trouble": "", "missed": 0}


async def test_degrees_are_unsupported(client: EncoderClient) -> None:
    with refused() as told:
        await client.get_position(PositionType.POSITION_TYPE_ANGLE_DEGREES)
    assert (told.status, told.words) == (
        Status.UNIMPLEMENTED,
        'encoder "e" counts ticks and does not support degrees',
    )
    assert await client.get_geometries() == []


@given(st.lists(st.sampled_from([1, -1]), max_size=60))
def test_quadrature_decoder_follows_the_shaft(steps: list[int]) -> None:
    quadrature = QuadratureDecoder()
    quadrature.on_a(False)
    quadrature.on_b(False)
    signals = ((False, False), (True, False), (True, True), (False, True))
    places = list(accumulate(steps, initial=0))
    found = 0
    for before, after in pairwise(places):
        (old_a, _), (a, b) = signals[before % 4], signals[after % 4]
        found += quadrature.on_a(a) if a != old_a else quadrature.on_b(b)
    assert found == places[-1]
    assert quadrature.missed == 0


def test_quadrature_decoder_counts_missed_edges() -> None:
    quadrature = QuadratureDecoder()
    for high in (True, True, False):
        quadrature.on_a(high)
    assert quadrature.missed == 1


async def test_single_encoder_counts_in_the_direction_of_its_source(
    board: RecordingBoard, clock: ManualClock
) -> None:
    attributes = SingleEncoderAttributes.model_validate(SINGLE)
    encoder = await SingleEncoder.new(NAME, attributes, {BOARD: board}, clock)
    await play_edges(board, clock, [("1", True), ("1", False)] * 3)
    assert await read_ticks(encoder) == 3
    encoder.set_direction_source(lambda: -1)
    await play_edges(board, clock, [("1", True)])
    assert await read_ticks(encoder) == 2
    await encoder.close()


async def test_unknown_interrupt_is_refused(board: RecordingBoard) -> None:
    attributes = SingleEncoderAttributes.model_validate({"board": "pins", "pins": {"i": "x"}})
    with pytest.raises(NotFound, match='no digital interrupt "x": it has a, b'):
        await SingleEncoder.new(NAME, attributes, {BOARD: board})


def _read_fault(encoder: GpioEncoder) -> str | None:
    return encoder.fault


async def test_lost_ticks_are_reported_and_the_stream_restarts(
    encoder: IncrementalEncoder,
    client: EncoderClient,
    board: RecordingBoard,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    await board.close()
    await clock.settle()
    words = 'the board\'s stream of ticks failed: board "pins" was closed; reopening it'
    assert _read_fault(encoder) == words
    with refused() as told:
        await client.get_position()
    assert (told.status, told.words) == (Status.UNAVAILABLE, words)
    await clock.advance(0.25)
    assert _read_fault(encoder) is None
    await play_edges(board, clock, FORWARD)
    assert await read_ticks(encoder) == 3  # of the first edge nobody knows which way it was
    assert [record.getMessage() for record in caplog.records] == [words]


async def test_encoder_works_with_a_remote_board(
    board: RecordingBoard, clock: ManualClock, serve: Serve
) -> None:
    """The board may belong to a module or another machine, behind the SDK's client."""
    attributes = IncrementalEncoderAttributes.model_validate(INCREMENTAL)
    async with serve(board) as channel:
        distant = {BOARD: BoardClient("pins", channel)}
        encoder = await IncrementalEncoder.new(NAME, attributes, distant, clock)
        async with asyncio.timeout(60):
            while not board._streams:
                await clock.settle()
            for pin, high in FORWARD * 2:
                await (await board.gpio_pin_by_name(pin)).set(high)
            while await read_ticks(encoder) < 7:
                await clock.settle()
        await encoder.close()
