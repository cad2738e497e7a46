"""Parsers of logging: patterns, queries, masks, the spool, the log file, the journal."""

from __future__ import annotations

import json
import zlib
from urllib.parse import parse_qsl

from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy, split_texts

from cogwork.control.logs import parse_query
from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.pattern import Pattern
from cogwork.logs.record_codec import decode_entry, decode_record, encode_entry, encode_record
from cogwork.logs.rotating_file import RotatedNames, find_start_time
from cogwork.logs.secret_mask import SecretMask
from cogwork.logs.spool_index import (
    Ledger,
    LinePosition,
    QueuedLine,
    collect_batch,
    decode_slots,
    encode_slot,
    scan_segment,
)

_LOGGERS = ("rdk", "rdk.resource_manager.rdk:component:camera/belt", "a" * 60, "")


def target_pattern(data: bytes) -> None:
    with allow_errors(data, ValueError):
        pattern = Pattern.parse(decode_lossy(data))
        for logger in _LOGGERS:
            pattern.matches(logger)


def target_query(data: bytes) -> None:
    """Parse a query string of a URL."""
    parameters = dict(parse_qsl(decode_lossy(data), keep_blank_values=True))
    with allow_errors(data, ValueError):
        query = parse_query(parameters)
        for logger in _LOGGERS:
            query.matches(Entry(1.0, 20, logger, "x.py:1", "message"))


def target_mask(data: bytes) -> None:
    text, *secrets = split_texts(data)
    hidden = SecretMask(secrets).hide(text)
    for secret in secrets:
        if len(secret.strip()) >= 6 and "*" not in secret and secret in hidden:
            raise ContractViolation(f"{secret!r} is shown")


def target_spool_line(data: bytes) -> None:
    """Decode lines with a valid checksum and lines without one."""
    rest = data + b"\n"
    for line in (rest, b'{"crc":"%08x",%s' % (zlib.crc32(rest), rest)):
        found = decode_record(line)
        if found is not None:
            decode_entry(found[1])
        scan_segment([line], 0)
        for slot in (line, line.removesuffix(b"\n").ljust(511) + b"\n"):
            decode_slots(slot)
    if b"\n" not in data:
        record = decode_record(encode_record(7, data))
        if record != (7, data):
            raise ContractViolation(f"a sealed line came back as {record}")


def target_spool_entry(data: bytes) -> None:
    entry = decode_entry(data)
    if entry is None:
        return
    again = decode_entry(encode_entry(entry))
    if again is None:
        raise ContractViolation("an entry does not survive being written")
    collect_batch([QueuedLine(0, data, LinePosition(0, 0))], 0, 1, 10)
    for shown in (as_text(entry), as_json(entry)):
        shown.encode(errors="replace")


def target_log_file(data: bytes) -> None:
    start_time = find_start_time(data, 1.0)
    if not -1e11 < start_time < 1e12:
        raise ContractViolation(f"a log file that begins at {start_time}")
    names = RotatedNames("robot", ".log")
    name = f"robot-{decode_lossy(data)}"
    if names.matches(name) and names.next_name(0.0, name) <= name:
        raise ContractViolation("the next file does not sort behind the last")


_ENTRY = json.dumps(
    {
        "time": 1.5,
        "level": 20,
        "logger": "rdk",
        "place": "a.py:1",
        "message": "ü",
        "fields": {"a": 1},
    }
).encode()

TARGETS = (
    Target(
        "logs.pattern",
        target_pattern,
        lambda: [b"rdk.*", b"*camera*", b"rdk\\.(a|b)+", b"[a-z]{2,3}$", b"(?i)rdk"],
        ("cogwork.logs.pattern",),
        (
            b"*",
            b".*",
            b"(",
            b")",
            b"[",
            b"]",
            b"+",
            b"?",
            b"{",
            b"}",
            b"\\",
            b"|",
            b"(?",
            b"^",
            b"$",
        ),
        largest=300,
        stretched=8192,
    ),
    Target(
        "logs.query",
        target_query,
        lambda: [b"level=warn&since=12.5&logger=rdk.*&text=x", b"follow=1&level=DEBUG"],
        (
            "cogwork.control.logs:parse_query",
            "cogwork.control.logs:_parse_seconds",
            "cogwork.logs.levels",
        ),
        (b"level=", b"since=", b"logger=", b"text=", b"&", b"%", b"nan", b"inf"),
        largest=300,
        stretched=8192,
    ),
    Target(
        "logs.mask",
        target_mask,
        lambda: [b"the key is hunter22\0hunter22\0hunter2", b'a "quoted\\" one\0quoted"\0abcdef'],
        ("cogwork.logs.secret_mask",),
        (b"\0", b"hunter22", b"\\", b"\n", b'"'),
    ),
    Target(
        "logs.spool_line",
        target_spool_line,
        lambda: [
            b'"n":5,"data":' + _ENTRY + b"}",
            encode_record(3, _ENTRY)[:-1],
            encode_slot(4, Ledger("q", 1, 2, 3))[18:].rstrip(),
        ],
        (
            "cogwork.logs.record_codec",
            "cogwork.logs.spool_index:scan_segment",
            "cogwork.logs.spool_index:decode_slots",
        ),
        (b'"n":', b',"data":', b"}", b"{", b'"crc":"'),
    ),
    Target(
        "logs.spool_entry",
        target_spool_entry,
        lambda: [_ENTRY, _ENTRY[:-1] + b',"trace":"x"}'],
        ("cogwork.logs.record_codec", "cogwork.logs.entry"),
        (b'"time"', b'"level"', b'"fields"', b"null", b"1e400", b"NaN", b"[", b"{", b"\\ud800"),
    ),
    Target(
        "logs.file",
        target_log_file,
        lambda: [b"2026-11-15T05:11:32.123Z\tINFO", b"20261115T051132.123Z.log"],
        (
            "cogwork.logs.rotating_file:RotatedNames",
            "cogwork.logs.rotating_file:find_start_time",
            "cogwork.logs.rotating_file:parse_utc",
        ),
        (b"0001-01-01T00:00:00", b"9999-12-31T23:59:59", b"+14:00", b"W01", b"Z.log"),
        largest=200,
    ),
)
