from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogwork.modules.output import MAX_LINE_BYTES, MAX_LINES_PER_SECOND, LineSplitter

LINE = st.binary(max_size=40).map(lambda line: line.translate(None, b"\n\r\t\x1b"))


@given(st.lists(LINE, max_size=60), st.integers(1, 50))
def test_however_the_bytes_come_the_lines_are_the_same(lines: list[bytes], piece: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    reader = LineSplitter()

    told = [
        line
        for at in range(0, len(data), piece)
        for line in reader.feed(data[at : at + piece], now=5.0)
    ]

    assert [*told, *reader.flush()] == [line.decode(errors="replace") for line in lines]


def test_colours_and_tabs_are_not_told() -> None:
    """As the SDK writes its log."""
    reader = LineSplitter()
    said = b"12,123\t\x1b[33;36mINFO\x1b[0m\tserver.py:99\n\tat main.go:7\n"
    told = list(reader.feed(said, now=5.0))
    assert told == ["12,123  INFO    server.py:99", "    at main.go:7"]
    assert reader.last_lines == ("12,123  INFO    server.py:99", "at main.go:7")


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0, 1.5)), min_size=1, max_size=12
    )
)
def test_every_line_is_told_or_counted(pieces: list[tuple[int, bool, float]]) -> None:
    told: list[str] = []
    reader, now, count = LineSplitter(), 0.0, 0
    for number, torn, pause in pieces:
        now += pause
        data = b"ab\n" * number
        told += reader.feed(data[:-2] if torn and data else data, now)
        if torn and data:
            told += reader.feed(data[-2:], now)
        count += number
    told += reader.flush()

    whole = told.count("ab")
    left_out = sum(int(line.split()[1]) for line in told if line != "ab")
    assert whole + left_out == count
    assert whole <= MAX_LINES_PER_SECOND * (int(now) + 1)


def test_a_gap_is_told_where_it_is() -> None:
    reader = LineSplitter()
    told = [
        *reader.feed(b"a\n" * (MAX_LINES_PER_SECOND + 2) + b"half", 0.0),
        *reader.feed(b"\nb\n", 2.0),
    ]

    assert told[MAX_LINES_PER_SECOND:] == ["dropped 3 lines", "b"]


def test_a_half_line_at_the_end_of_a_flood_counts() -> None:
    reader = LineSplitter()
    told = [*reader.feed(b"a\n" * MAX_LINES_PER_SECOND + b"half", 0.0), *reader.flush()]

    assert told[MAX_LINES_PER_SECOND:] == ["dropped 1 line"]
    assert reader.last_lines == ("a", "a", "a", "a", "half")


def test_a_line_is_as_long_as_it_may_be() -> None:
    reader = LineSplitter()
    fits, longer = b"x" * MAX_LINE_BYTES, b"y" * (MAX_LINE_BYTES + 1)
    told = [*reader.feed(fits + b"\n" + longer + b"\nz\n", 0.0)]

    assert told[0] == fits.decode()
    assert told[1] == "y" * MAX_LINE_BYTES + " … (line truncated)"
    assert told[2] == "z"


def test_the_last_lines_are_few_short_and_not_blank() -> None:
    reader = LineSplitter()
    for _ in reader.feed(b"1\n2\n3\n4\n5\n\n  \n6\n" + b"x" * 1000 + b"\n", 0.0):
        pass

    assert reader.last_lines[:4] == ("3", "4", "5", "6")
    assert reader.last_lines[4] == "x" * 299 + "…"
