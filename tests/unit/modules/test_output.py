from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogwork.modules.output import LINES_A_SECOND, LONGEST_LINE, Lines

LINE = st.binary(max_size=40).map(lambda line: line.translate(None, b"\n\r\t\x1b"))


@given(st.lists(LINE, max_size=60), st.integers(1, 50))
def test_however_the_bytes_come_the_lines_are_the_same(lines: list[bytes], piece: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    reader = Lines()

    told = [
        line
        for at in range(0, len(data), piece)
        for line in reader.feed(data[at : at + piece], now=5.0)
    ]

    assert [*told, *reader.rest()] == [line.decode(errors="replace") for line in lines]


def test_colours_and_tabs_are_not_told() -> None:
    """As the SDK writes its log."""
    reader = Lines()
    said = b"12,123\t\x1b[33;36mINFO\x1b[0m\tserver.py:99\n\tat main.go:7\n"
    told = list(reader.feed(said, now=5.0))
    assert told == ["12,123  INFO    server.py:99", "    at main.go:7"]
    assert reader.last == ("12,123  INFO    server.py:99", "at main.go:7")


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0, 1.5)), min_size=1, max_size=12
    )
)
def test_every_line_is_told_or_counted(pieces: list[tuple[int, bool, float]]) -> None:
    told: list[str] = []
    reader, now, count = Lines(), 0.0, 0
    for number, torn, pause in pieces:
        now += pause
        data = b"ab\n" * number
        told += reader.feed(data[:-2] if torn and data else data, now)
        if torn and data:
            told += reader.feed(data[-2:], now)
        count += number
    told += reader.rest()

    whole = told.count("ab")
    left_out = sum(int(line.split()[0]) for line in told if line != "ab")
    assert whole + left_out == count
    assert whole <= LINES_A_SECOND * (int(now) + 1)


def test_a_gap_is_told_where_it_is() -> None:
    reader = Lines()
    told = [*reader.feed(b"a\n" * (LINES_A_SECOND + 2) + b"half", 0.0), *reader.feed(b"\nb\n", 2.0)]

    assert told[LINES_A_SECOND:] == ["3 lines were left out", "b"]


def test_a_half_line_at_the_end_of_a_flood_counts() -> None:
    reader = Lines()
    told = [*reader.feed(b"a\n" * LINES_A_SECOND + b"half", 0.0), *reader.rest()]

    assert told[LINES_A_SECOND:] == ["1 line was left out"]
    assert reader.last == ("a", "a", "a", "a", "half")


def test_a_line_is_as_long_as_it_may_be() -> None:
    reader = Lines()
    fits, longer = b"x" * LONGEST_LINE, b"y" * (LONGEST_LINE + 1)
    told = [*reader.feed(fits + b"\n" + longer + b"\nz\n", 0.0)]

    assert told[0] == fits.decode()
    assert told[1] == "y" * LONGEST_LINE + " … (the rest of the line was left out)"
    assert told[2] == "z"


def test_the_last_lines_are_few_short_and_not_blank() -> None:
    reader = Lines()
    for _ in reader.feed(b"1\n2\n3\n4\n5\n\n  \n6\n" + b"x" * 1000 + b"\n", 0.0):
        pass

    assert reader.last[:4] == ("3", "4", "5", "6")
    assert reader.last[4] == "x" * 299 + "…"
