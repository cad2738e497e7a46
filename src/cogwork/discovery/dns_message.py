"""Encoding and decoding of multicast DNS messages. No I/O."""

from __future__ import annotations

import enum
import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_SIZE = 9000
"""Maximum size of a message in bytes."""
MAX_QUESTIONS = 16
MAX_RECORDS = 64
"""Maximum records of a response. The known answers, which are the records of a query, are not
decoded."""
MAX_NAME_SIZE = 255
"""Maximum size of an uncompressed name in bytes, as in RFC 1035."""
_MAX_LABELS = 40
"""Maximum labels of a name. The longest names in use are IPv6 addresses, with 34 labels."""
_MAX_POINTERS = 8
"""Maximum compression pointers of a name."""
_POINTER = 0xC0
_HEADER = struct.Struct(">HHHHHH")
_QUESTION = struct.Struct(">HH")
_RECORD = struct.Struct(">HHIH")
_SRV = struct.Struct(">HHH")
_RESPONSE = 0x8400
"""Flags of an authoritative response."""
_IS_RESPONSE = 0x8000
_CLASS_IN = 1
_TOP_BIT = 0x8000
"""In a question: request for a unicast response. In a record: flush of older cached records."""


class InvalidMessage(ValueError):
    """The bytes are not a DNS message."""


class RecordType(enum.IntEnum):
    A = 1
    PTR = 12
    TXT = 16
    AAAA = 28
    SRV = 33
    ANY = 255


class Question(NamedTuple):
    name: str
    """The name in lower case, without the final dot."""
    type: int
    wants_unicast: bool = False


class Service(NamedTuple):
    """The value of an SRV record."""

    port: int
    host: str


Value = str | Service | tuple[str, ...]
"""The value of an A, AAAA or PTR record (text), an SRV record, or a TXT record (texts)."""


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    type: RecordType
    value: Value
    ttl: int = 120
    """Seconds for which clients may cache the record; 0 removes it from their caches."""

    @property
    def is_shared(self) -> bool:
        """Whether several hosts may have records of the same name."""
        return self.type is RecordType.PTR


class Message(NamedTuple):
    id: int
    is_response: bool
    questions: list[Question]
    records: list[Record]
    """Answers and additional records."""


def encode_query(questions: Iterable[Question], id_: int = 0) -> bytes:
    asked = list(questions)
    body = b"".join(
        _encode_name(each.name)
        + _QUESTION.pack(each.type, _CLASS_IN | (_TOP_BIT if each.wants_unicast else 0))
        for each in asked
    )
    return _HEADER.pack(id_, 0, len(asked), 0, 0, 0) + body


def encode_response(
    answers: Sequence[Record], additional: Sequence[Record] = (), id_: int = 0
) -> bytes:
    header = _HEADER.pack(id_, _RESPONSE, 0, len(answers), 0, len(additional))
    return header + b"".join(map(_encode_record, (*answers, *additional)))


def is_query(data: bytes) -> bool:
    """Return whether a message starts like a query that `decode` accepts."""
    if len(data) < _HEADER.size:
        return False
    _, flags, questions, *_ = _HEADER.unpack_from(data)
    return not flags & _IS_RESPONSE and 0 < questions <= MAX_QUESTIONS


def decode(data: bytes) -> Message:
    """Decode a message in bounded time; raise InvalidMessage if it is invalid."""
    try:
        return _decode(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidMessage(f"not a DNS message: {error}") from None


def _decode(data: bytes) -> Message:
    id_, flags, question_count, *counts = _HEADER.unpack_from(data)
    is_response = bool(flags & _IS_RESPONSE)
    record_count = sum(counts) if is_response else 0
    if question_count > MAX_QUESTIONS or record_count > MAX_RECORDS:
        raise InvalidMessage(f"more than {MAX_QUESTIONS} questions or {MAX_RECORDS} records")
    at = _HEADER.size
    questions = []
    for _ in range(question_count):
        name, at = _decode_name(data, at)
        kind, klass = _QUESTION.unpack_from(data, at)
        at += _QUESTION.size
        questions.append(Question(name, kind, bool(klass & _TOP_BIT)))
    records = []
    for _ in range(record_count):
        name, at = _decode_name(data, at)
        kind, _, ttl, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + size > len(data):
            raise InvalidMessage("a record extends past the end of the message")
        value = _decode_value(data, at, kind, size)
        at += size
        if value is not None:
            records.append(Record(name, RecordType(kind), value, ttl))
    return Message(id_, is_response, questions, records)


def _encode_record(record: Record) -> bytes:
    value = _encode_value(record)
    klass = _CLASS_IN | (0 if record.is_shared else _TOP_BIT)
    head = _RECORD.pack(record.type, klass, record.ttl, len(value))
    return _encode_name(record.name) + head + value


def _encode_value(record: Record) -> bytes:
    match record.value:
        case Service(port, host):
            return _SRV.pack(0, 0, port) + _encode_name(host)
        case str(text) if record.type is RecordType.PTR:
            return _encode_name(text)
        case str(text):
            return ipaddress.ip_address(text).packed
        case texts:
            return b"".join(_encode_label(each) for each in texts) or b"\0"


def _decode_value(data: bytes, at: int, kind: int, size: int) -> Value | None:
    """Decode the value of a record; return None for record types that are not used here."""
    match kind:
        case RecordType.A | RecordType.AAAA if size == (4 if kind == RecordType.A else 16):
            return str(ipaddress.ip_address(data[at : at + size]))
        case RecordType.PTR:
            return _decode_name(data, at)[0]
        case RecordType.SRV:
            _, _, port = _SRV.unpack_from(data, at)
            return Service(port, _decode_name(data, at + _SRV.size)[0])
        case RecordType.TXT:
            return _decode_texts(data[at : at + size])
    return None


def _decode_texts(data: bytes) -> tuple[str, ...]:
    texts = []
    at = 0
    while at < len(data):
        size = data[at]
        texts.append(data[at + 1 : at + 1 + size].decode(errors="replace"))
        at += 1 + size
    return tuple(texts)


def _encode_name(name: str) -> bytes:
    return b"".join(_encode_label(each) for each in split_name(name)) + b"\0"


def _encode_label(text: str) -> bytes:
    data = text.encode()[:63] if len(text.encode()) > 63 else text.encode()
    return bytes((len(data),)) + data


def _decode_name(data: bytes, at: int) -> tuple[str, int]:
    """Decode a name; return it with the position of the next field."""
    labels: list[str] = []
    name_size = pointers = end = 0
    start = at
    while True:
        size = data[at]
        if size & _POINTER == _POINTER:
            target = (size & ~_POINTER) << 8 | data[at + 1]
            pointers += 1
            # Each pointer must point further back than the previous one, so that no cycle is
            # possible.
            if target >= start or pointers > _MAX_POINTERS:
                raise InvalidMessage("a compression pointer does not refer to an earlier name")
            end = end or at + 2
            at = start = target
            continue
        if size & _POINTER:
            raise InvalidMessage("a label has an unknown type")
        at += 1
        name_size += 1 + size
        if name_size > MAX_NAME_SIZE or len(labels) > _MAX_LABELS:
            raise InvalidMessage("a name is too long")
        if not size:
            return join_name(labels), end or at
        labels.append(data[at : at + size].decode())
        at += size


def join_name(labels: Iterable[str]) -> str:
    """Join labels to a name, and escape dots within labels."""
    return ".".join(label.replace("\\", "\\\\").replace(".", "\\.") for label in labels).lower()


def split_name(name: str) -> list[str]:
    labels, label, escaped = [], "", False
    for character in name:
        if escaped:
            label, escaped = label + character, False
        elif character == "\\":
            escaped = True
        elif character == ".":
            labels.append(label)
            label = ""
        else:
            label += character
    return [*labels, label] if label else labels
