from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.sensor.serial_lines import (
    MAX_LINE_BYTES,
    BadLine,
    SerialLineSplitter,
    parse_line,
)


@pytest.mark.parametrize(
    ("kind", "line", "found"),
    [
        (
            "json",
            b'{"t": 21.5, "ok": true, "at": [1, "x"]}',
            {"t": 21.5, "ok": True, "at": [1, "x"]},
        ),
        ("json", b"  42 ", {"value": 42}),
        ("json", b'{"big": 123456789012345678901234567890}', {"big": 1.2345678901234568e29}),
        ("csv", b"21.5, on,3", {"t": 21.5, "state": "on", "n": 3}),
        ("csv", b'1,"a, b",nan', {"t": 1, "state": "a, b", "n": "nan"}),
        ("key=value", b"t=21.5 hum = 40;state=on", {"t": 21.5, "hum": 40, "state": "on"}),
        ("key=value", b"noise t=1,", {"t": 1}),
        ("text", b" hello \xff", {"text": "hello \N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_line_is_parsed_into_readings(kind: str, line: bytes, found: dict[str, object]) -> None:
    assert parse_line(kind, ["t", "state", "n"], line) == found


@pytest.mark.parametrize(
    ("kind", "line", "words"),
    [
        ("json", b'{"t": 21.', "it is not JSON: "),
        ("json", b'{"t": NaN}', "NaN is not a finite number"),
        ("json", b'{"t": 1e999}', "1e999 is not a finite number"),
        ("json", b"[" * 60_000, "nested too deeply"),
        ("json", b"[" * 40 + b"]" * 40, "nested too deeply"),
        ("json", b'{"a": ["\\ud800"]}', "an unpaired surrogate"),
        ("json", b'{"\\udfff": 1}', "an unpaired surrogate"),
        ("json", b"\xff\xfe", "it is not valid UTF-8 text"),
        ("csv", b"1,2", "it has 2 values instead of 3"),
        ("csv", b'"' + b"a" * 200_000, "it is not CSV"),
        ("key=value", b"nothing", "it contains no key=value pair"),
    ],
)
def test_invalid_lines_are_refused(kind: str, line: bytes, words: str) -> None:
    with pytest.raises(BadLine, match=words):
        parse_line(kind, ["t", "state", "n"], line)


@pytest.mark.parametrize("noise", [b"3" * 65_000, b"a " * 32_000, b"a" + b" " * 65_000 + b"b"])
def test_long_line_of_noise_takes_linear_time(noise: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(BadLine, match="no key=value"):
        parse_line("key=value", [], noise)
    assert time.process_time() - begun < 1


@given(st.sampled_from(["json", "csv", "key=value", "text"]), st.binary(max_size=200))
def test_noise_is_refused_or_parsed(kind: str, noise: bytes) -> None:
    try:
        found = parse_line(kind, ["t"], noise)
    except BadLine:
        return
    assert all(isinstance(key, str) for key in found)


@given(st.lists(st.text("ab ", min_size=1, max_size=9), max_size=9), st.integers(1, 7))
def test_lines_are_split_whatever_the_chunk_size(texts: list[str], size: int) -> None:
    sent = "".join(f"{text}\r\n" for text in texts).encode()
    lines = SerialLineSplitter()
    found = [
        line
        for start in range(0, len(sent), size)
        for line in lines.feed(sent[start : start + size])
    ]
    assert [line.decode() for line in found] == texts


def test_endless_line_is_dropped() -> None:
    lines = SerialLineSplitter()
    for _ in range(100):
        assert lines.feed(b"x" * 10_000) == []
        assert len(lines._partial) <= MAX_LINE_BYTES
    assert lines.feed(b"the rest\nnext\n") == [b"next"]
    assert lines.too_long == 1
    assert lines.feed(b"x" * MAX_LINE_BYTES + b"\n") == [b"x" * MAX_LINE_BYTES]
