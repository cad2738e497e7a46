"""Ranges of HTTP requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.cloud.registry.byte_range import ByteRange, UnsatisfiableRange, parse_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", None),
        ("bytes=0-", (0, 100)),
        ("bytes=10-19", (10, 20)),
        ("bytes=99-", (99, 100)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=20-10", None),
        ("bytes=-", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
        ("bytes=\u0660-", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_range(header: str, expected: tuple[int, int] | None) -> None:
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=500-600", "bytes=-0"])
def test_range_behind_the_end(header: str) -> None:
    with pytest.raises(UnsatisfiableRange, match="which has 100 bytes"):
        parse_range(header, 100)


@given(st.text(), st.integers(0, 1 << 40))
def test_any_header_is_inside_of_the_file(header: str, size: int) -> None:
    for text in (header, f"bytes={header}"):
        try:
            found = parse_range(text, size)
        except UnsatisfiableRange:
            continue
        assert found is None or 0 <= found.start < found.end <= size
        assert found is None or isinstance(found, ByteRange)
