from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.discovery.dns_message import (
    InvalidMessage,
    Question,
    Record,
    RecordType,
    Service,
    decode,
    encode_query,
    encode_response,
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


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_any_bytes_are_read_or_refused(data: bytes, at: int, change: bytes) -> None:
    mutated = bytearray(encode_response(RECORDS))
    mutated[at : at + len(change)] = change
    for each in (data, bytes(mutated)):
        with contextlib.suppress(InvalidMessage):
            decode(each)
