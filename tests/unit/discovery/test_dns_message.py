from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.discovery.dns_message import (
    MAX_NAME_SIZE,
    MAX_QUESTIONS,
    InvalidMessage,
    Question,
    Record,
    RecordType,
    Service,
    decode,
    encode_query,
    encode_response,
    is_query,
    join_name,
    split_name,
)

LABELS = st.lists(st.text(min_size=1, max_size=15), min_size=1, max_size=4)


@given(LABELS)
def test_names_survive_joining(labels: list[str]) -> None:
    assert split_name(join_name(labels)) == [label.lower() for label in labels]


def test_query_survives_encoding() -> None:
    question = Question("_rpc._tcp.local", RecordType.PTR, wants_unicast=True)
    message = decode(encode_query([question], 7))
    assert (message.id, message.is_response, message.questions) == (7, False, [question])


RECORDS = [
    Record("_rpc._tcp.local", RecordType.PTR, "belt\\.factory._rpc._tcp.local"),
    Record("belt\\.factory._rpc._tcp.local", RecordType.SRV, Service(8080, "vm.local")),
    Record("belt\\.factory._rpc._tcp.local", RecordType.TXT, ("grpc", "webrtc")),
    Record("vm.local", RecordType.A, "192.0.2.7", ttl=0),
    Record("vm.local", RecordType.AAAA, "2001:db8::7"),
]


def test_records_survive_encoding() -> None:
    message = decode(encode_response(RECORDS[:1], RECORDS[1:]))
    assert message.is_response
    assert message.records == RECORDS


def test_compressed_names_are_read() -> None:
    """As other programs send them: the second name refers to the first."""
    head = bytes.fromhex("000084000000000200000000")
    name = b"\x04_rpc\x04_tcp\x05local\0"
    first = name + bytes.fromhex("000c0001000000780004") + b"\x01a\xc0\x0c"
    second = b"\xc0\x0c" + bytes.fromhex("000c0001000000780004") + b"\x01b\xc0\x0c"
    values = [record.value for record in decode(head + first + second).records]
    assert values == ["a._rpc._tcp.local", "b._rpc._tcp.local"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 11,
        bytes.fromhex("000000000001000000000000") + b"\xc0\x0c\0\x0c\0\x01",
        bytes.fromhex("00008400ffffffffffffffff"),
        encode_response(RECORDS)[:-3],
    ],
)
def test_broken_messages_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        decode(data)


HEADER = bytes.fromhex("000000000001000000000000")
ASKED = b"\0\x0c\0\x01"


def ask(name: bytes) -> bytes:
    return HEADER + name + ASKED


def test_names_have_at_most_255_bytes() -> None:
    longest = b"\x3f" + b"a" * 63
    fitting = longest * 3 + b"\x3d" + b"a" * 61 + b"\0"
    assert len(fitting) == MAX_NAME_SIZE
    assert len(decode(ask(fitting)).questions[0].name) == MAX_NAME_SIZE - 2
    with pytest.raises(InvalidMessage, match="too long"):
        decode(ask(longest * 4 + b"\0"))
    # Also if it is put together from parts.
    two_names = (
        struct.pack(">HHHHHH", 0, 0, 2, 0, 0, 0) + fitting + ASKED + b"\x01a\xc0\x0c" + ASKED
    )
    with pytest.raises(InvalidMessage, match="too long"):
        decode(two_names)


@pytest.mark.parametrize(
    "name",
    [
        b"\xc0\x0c",  # itself
        b"\x01a\xc0\x0c",  # its own beginning
        b"\xc0\x0e\x01a\0",  # what follows
        b"\xc0\x00",  # the header, whose bytes lead forward
        b"\x41a\0",  # a label of another kind
    ],
)
def test_pointers_lead_backwards_to_labels(name: bytes) -> None:
    header = HEADER if name != b"\xc0\x00" else b"\xc0\x0c" + HEADER[2:]
    with pytest.raises(InvalidMessage):
        decode(header + name + ASKED)


def test_chain_of_pointers_is_refused() -> None:
    """Each leads backwards, to the one before."""
    chain = b"".join(struct.pack(">H", 0xC000 | at) for at in range(13, 213, 2))
    record = b"\0" + bytes.fromhex("001000010000007800c9") + b"\0" + chain
    name = struct.pack(">H", 0xC000 | 12 + len(record) - 2)
    data = struct.pack(">HHHHHH", 0, 0x8400, 0, 2, 0, 0) + record + name
    with pytest.raises(InvalidMessage, match="earlier"):
        decode(data + bytes.fromhex("00010001000000780004c0000201"))


def test_messages_with_many_questions_are_refused() -> None:
    question = Question("_rpc._tcp.local", RecordType.PTR)
    assert len(decode(encode_query([question] * MAX_QUESTIONS)).questions) == MAX_QUESTIONS
    too_many = encode_query([question] * (MAX_QUESTIONS + 1))
    assert not is_query(too_many)
    with pytest.raises(InvalidMessage, match="more than 16"):
        decode(too_many)


def test_known_answers_of_a_query_are_not_read() -> None:
    query = struct.pack(">HHHHHH", 0, 0, 1, 500, 0, 0) + b"\x05local\0" + ASKED + b"\xff" * 50
    assert is_query(query)
    assert decode(query).records == []


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_any_bytes_are_read_or_refused(data: bytes, at: int, change: bytes) -> None:
    mutated = bytearray(encode_response(RECORDS))
    mutated[at : at + len(change)] = change
    for each in (data, bytes(mutated)):
        with contextlib.suppress(InvalidMessage):
            decode(each)
