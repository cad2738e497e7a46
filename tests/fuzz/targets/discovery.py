"""What computers on the local network send to the port of multicast DNS."""

from __future__ import annotations

import struct

from tests.fuzz.target import ContractViolation, Target, allow_errors

from cogwork.discovery.announcement import SERVICE, Announcement
from cogwork.discovery.dns_message import (
    MAX_NAME_SIZE,
    MAX_QUESTIONS,
    MAX_RECORDS,
    MAX_SIZE,
    InvalidMessage,
    Message,
    Question,
    RecordType,
    decode,
    encode_query,
    encode_response,
    is_query,
    split_name,
)
from cogwork.discovery.search import read_machines

_MACHINE = Announcement(("belt.factory",), 8080, "vm")
_ADDRESSES = ("192.0.2.7", "2001:db8::7")
_TOKENS = (
    b"\xc0\x0c",
    b"\xc0\x1d",
    b"\x04_rpc\x04_tcp\x05local\x00",
    b"\x05local\x00",
    b"\x00\x0c\x00\x01",
    b"\x00\x21\x80\x01",
    b"\x3f",
    b"\x00\xff\x00\x01",
)


def target_query(data: bytes) -> None:
    """Check that names are bounded, and that what is answered fits into packets."""
    with allow_errors(data, InvalidMessage):
        message = decode(data)
        _check_bounds(message)
        if message.is_response or not message.questions:
            return
        if not is_query(data):
            raise ContractViolation("a query was not recognized")
        packets = _MACHINE.answer(message.questions, _ADDRESSES)
        if packets and not _MACHINE.concerns(data):
            raise ContractViolation("a query would be answered that is dropped unread")
        if any(len(encode_response(*packet, message.id)) > MAX_SIZE for packet in packets):
            raise ContractViolation("a response is too large")


def target_response(data: bytes) -> None:
    """Check that a response lists a bounded number of machines."""
    with allow_errors(data, InvalidMessage):
        message = decode(data)
        _check_bounds(message)
        if len(list(read_machines(message))) > MAX_RECORDS**2:
            raise ContractViolation("more machines than records could list")


def _check_bounds(message: Message) -> None:
    if len(message.questions) > MAX_QUESTIONS or len(message.records) > MAX_RECORDS:
        raise ContractViolation("too many questions or records")
    names = [each.name for each in message.questions] + [each.name for each in message.records]
    for name in names:
        size = sum(1 + len(label.encode()) for label in split_name(name))
        # Lower case may take more bytes than upper case.
        if size > 2 * MAX_NAME_SIZE:
            raise ContractViolation(f"a name of {size} bytes")


def _query_seeds() -> list[bytes]:
    names = (SERVICE, "belt\\.factory._rpc._tcp.local", "vm.local", "_services._dns-sd._udp.local")
    questions = [Question(name, RecordType.ANY) for name in names]
    compressed = struct.pack(">HHHHHH", 1, 0, 2, 0, 0, 0) + (
        b"\x04_rpc\x04_tcp\x05local\0\0\x0c\0\x01\x02vm\xc0\x16\0\x01\0\x01"
    )
    return [encode_query(questions), encode_query(questions[:1], 7), compressed]


def _response_seeds() -> list[bytes]:
    return [encode_response(records[:1], records[1:]) for records in _MACHINE.listings(_ADDRESSES)]


TARGETS = (
    Target(
        "discovery.query",
        target_query,
        _query_seeds,
        ("cogwork.discovery.dns_message", "cogwork.discovery.announcement"),
        _TOKENS,
    ),
    Target(
        "discovery.response",
        target_response,
        _response_seeds,
        ("cogwork.discovery.dns_message", "cogwork.discovery.search:read_machines"),
        _TOKENS,
    ),
)
