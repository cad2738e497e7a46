"""Messages of an SCTP stream, whose chunks arrive in any order and were numbered in another one."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from aiortc.rtcsctptransport import (
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_LAST_FRAG,
    SCTP_DATA_UNORDERED,
)
from hypothesis import given
from hypothesis import strategies as st

from cogwork.webrtc.inbound_stream import InboundStream

PROTOCOL = 53


@dataclass(frozen=True)
class Chunk:
    flags: int
    tsn: int
    stream_seq: int
    user_data: bytes
    stream_id: int = 1
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Sent:
    data: bytes
    chunks: tuple[Chunk, ...]
    number: int | None
    """The place among the ordered messages; None for an unordered message."""


@dataclass(frozen=True)
class Traffic:
    first_number: int
    first_tsn: int
    sent: list[Sent]
    """By their TSNs."""
    arrivals: list[Chunk]


def split(data: bytes, tsn: int, number: int, *, pieces: int, ordered: bool) -> list[Chunk]:
    size = -(-len(data) // pieces)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [
        Chunk(
            (0 if ordered else SCTP_DATA_UNORDERED)
            | (SCTP_DATA_FIRST_FRAG if at == 0 else 0)
            | (SCTP_DATA_LAST_FRAG if at == len(parts) - 1 else 0),
            (tsn + at) & 0xFFFFFFFF,
            number & 0xFFFF,
            part,
        )
        for at, part in enumerate(parts)
    ]


@st.composite
def traffic(draw: st.DrawFn) -> Traffic:
    first_number = draw(st.sampled_from([0, 7, 0xFFFE]))
    tsn = first_tsn = draw(st.sampled_from([1, 1000, 0xFFFFFFFA]))
    sizes = draw(st.lists(st.integers(1, 6), max_size=12))
    are_ordered = [draw(st.booleans()) for _ in sizes]
    numbers = iter(draw(st.permutations(range(sum(are_ordered)))))
    sent = []
    for label, (pieces, ordered) in enumerate(zip(sizes, are_ordered, strict=True)):
        data = bytes([label]) * pieces
        number = next(numbers) if ordered else None
        chunks = split(data, tsn, first_number + (number or 0), pieces=pieces, ordered=ordered)
        tsn = (tsn + len(chunks)) & 0xFFFFFFFF
        sent.append(Sent(data, tuple(chunks), number))
    arrivals = draw(st.permutations([chunk for each in sent for chunk in each.chunks]))
    return Traffic(first_number, first_tsn, sent, arrivals)


def deliver(stream: InboundStream) -> list[bytes]:
    found = list(stream.pop_messages())
    assert all(each[:2] == (1, PROTOCOL) for each in found)
    return [data for _, _, data in found]


@given(traffic())
def test_each_message_is_delivered_as_soon_as_it_may_be(traffic: Traffic) -> None:
    stream = InboundStream()
    stream.sequence_number = traffic.first_number
    arrived: set[Chunk] = set()
    delivered: list[bytes] = []
    for chunk in traffic.arrivals:
        stream.add_chunk(chunk)
        arrived.add(chunk)
        delivered += deliver(stream)
        complete = [each for each in traffic.sent if arrived.issuperset(each.chunks)]
        numbers = {each.number for each in complete}
        next_number = next(each for each in itertools.count() if each not in numbers)
        expected = [
            each.data for each in complete if each.number is None or each.number < next_number
        ]
        assert Counter(delivered) == Counter(expected)
    ordered = [each for each in traffic.sent if each.number is not None]
    in_order = [each.data for each in sorted(ordered, key=lambda each: each.number or 0)]
    assert [each for each in delivered if each in in_order] == in_order


@given(traffic(), st.data())
def test_what_the_peer_gives_up_holds_up_nothing(traffic: Traffic, data: st.DataObject) -> None:
    """Of each message given up, some chunks have arrived; then the peer says so."""
    given_up = [each for each in traffic.sent if data.draw(st.booleans())]
    missing = {data.draw(st.sampled_from(each.chunks)) for each in given_up}
    stream = InboundStream()
    stream.sequence_number = traffic.first_number
    delivered: list[bytes] = []
    arrived = [each for each in traffic.arrivals if each not in missing]
    for chunk in arrived:
        stream.add_chunk(chunk)
        delivered += deliver(stream)
    # As aiortc handles FORWARD TSN.
    count = sum(len(each.chunks) for each in traffic.sent)
    numbers = [each.number for each in given_up if each.number is not None]
    if numbers:
        stream.sequence_number = (traffic.first_number + max(numbers) + 1) & 0xFFFF
    delivered += deliver(stream)
    pruned = stream.prune_chunks((traffic.first_tsn + count - 1) & 0xFFFFFFFF)
    lost = [each for each in given_up for chunk in each.chunks if chunk not in missing]
    assert pruned == len(lost)
    kept = [each for each in traffic.sent if each not in given_up]
    assert Counter(delivered) == Counter(each.data for each in kept)
    in_order = sorted(
        (each for each in kept if each.number is not None), key=lambda each: each.number or 0
    )
    assert [each for each in delivered if each in {each.data for each in in_order}] == [
        each.data for each in in_order
    ]


def test_message_that_goes_on_behind_what_was_given_up_is_kept() -> None:
    stream = InboundStream()
    chunks = split(b"abcd", 11, 1, pieces=4, ordered=True)
    for chunk in chunks[:2]:
        stream.add_chunk(chunk)
    stream.sequence_number = 1
    assert stream.prune_chunks(12) == 0
    for chunk in chunks[2:]:
        stream.add_chunk(chunk)
    assert deliver(stream) == [b"abcd"]


def test_message_whose_beginning_was_given_up_is_forgotten() -> None:
    stream = InboundStream()
    for chunk in split(b"abcd", 11, 0, pieces=4, ordered=True)[1:3]:
        stream.add_chunk(chunk)
    assert stream.prune_chunks(11) == 2
    assert stream.prune_chunks(13) == 0
    assert deliver(stream) == []


@pytest.mark.parametrize("order", ["forwards", "backwards", "ends first"])
@pytest.mark.parametrize("what", ["fragments", "messages"])
def test_cost_of_a_chunk_does_not_grow(what: str, order: str) -> None:
    costs = []
    for count in (500, 4000):
        if what == "fragments":
            chunks = split(bytes(count), 1, 0, pieces=count, ordered=True)
        else:
            made = (split(b"x", 1 + at, at, pieces=1, ordered=True) for at in range(count))
            chunks = [chunk for each in made for chunk in each]
        if order == "backwards":
            chunks.reverse()
        elif order == "ends first":
            half = count // 2
            chunks = [
                chunk
                for pair in zip(chunks[:half], reversed(chunks[half:]), strict=True)
                for chunk in pair
            ]
        costs.append(count_calls(chunks) / count)
    assert costs[1] < 1.5 * costs[0]


def count_calls(chunks: list[Chunk]) -> int:
    calls, stream = 0, InboundStream()

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for chunk in chunks:
            stream.add_chunk(chunk)
            for _ in stream.pop_messages():
                pass
    finally:
        sys.setprofile(None)
    return calls
