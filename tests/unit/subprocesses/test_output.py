from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogwork.subprocesses.output import MAX_LINE_BYTES, MAX_LINES_PER_SECOND, LineSplitter

LINE = st.binary(max_size=40).map(lambda line: line.translate(None, b"\n\r\t\x1b"))


@given(st.lists(LINE, max_size=60), st.integers(1, 50))
def test_lines_are_split_across_any_chunk_boundaries(raw_lines: list[bytes], piece: int) -> None:
    data = b"".join(line + b"\n" for line in raw_lines)
    reader = LineSplitter()

    lines = [
        line
        for at in range(0, len(data), piece)
        for line in reader.feed(data[at : at + piece], now=5.0)
    ]

    assert [*lines, *reader.flush()] == [line.decode(errors="replace") for line in raw_lines]


def test_colors_and_tabs_are_removed() -> None:
    """The SDK writes its log in this format."""
    reader = LineSplitter()
    raw = b"12,123\t\x1b[33;36mINFO\x1b[0m\tserver.py:99\n\tat main.go:7\n"
    lines = list(reader.feed(raw, now=5.0))
    assert lines == ["12,123  INFO    server.py:99", "    at main.go:7"]
    assert reader.last_lines == ("12,123  INFO    server.py:99", "at main.go:7")


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0, 1.5)), min_size=1, max_size=12
    )
)
def test_every_line_is_reported_or_counted(pieces: list[tuple[int, bool, float]]) -> None:
    lines: list[str] = []
    reader, now, count = LineSplitter(), 0.0, 0
    for number, torn, pause in pieces:
        now += pause
        data = b"ab\n" * number
        lines += reader.feed(data[:-2] if torn and data else data, now)
        if torn and data:
            lines += reader.feed(data[-2:], now)
        count += number
    lines += reader.flush()

    whole = lines.count("ab")
    left_out = sum(int(line.split()[1]) for line in lines if line != "ab")
    assert whole + left_out == count
    assert whole <= MAX_LINES_PER_SECOND * (int(now) + 1)


def test_dropped_lines_are_reported_at_their_position() -> None:
    reader = LineSplitter()
    lines = [
        *reader.feed(b"a\n" * (MAX_LINES_PER_SECOND + 2) + b"half", 0.0),
        *reader.feed(b"\nb\n", 2.0),
    ]

    assert lines[MAX_LINES_PER_SECOND:] == ["dropped 3 lines", "b"]


def test_partial_line_at_the_end_of_a_flood_is_counted() -> None:
    reader = LineSplitter()
    lines = [*reader.feed(b"a\n" * MAX_LINES_PER_SECOND + b"half", 0.0), *reader.flush()]

    assert lines[MAX_LINES_PER_SECOND:] == ["dropped 1 line"]
    assert reader.last_lines == ("a", "a", "a", "a", "half")


def test_long_line_is_truncated() -> None:
    reader = LineSplitter()
    fits, longer = b"x" * MAX_LINE_BYTES, b"y" * (MAX_LINE_BYTES + 1)
    lines = [*reader.feed(fits + b"\n" + longer + b"\nz\n", 0.0)]

    assert lines[0] == fits.decode()
    assert lines[1] == "y" * MAX_LINE_BYTES + " … (line truncated)"
    assert lines[2] == "z"


def test_last_lines_are_few_short_and_not_blank() -> None:
    reader = LineSplitter()
    for _ in reader.feed(b"1\n2\n3\n4\n5\n\n  \n6\n" + b"x" * 1000 + b"\n", 0.0):
        pass

    assert reader.last_lines[:4] == ("3", "4", "5", "6")
    assert reader.last_lines[4] == "x" * 299 + "…"


def test_last_lines_of_a_traceback_begin_with_a_location() -> None:
    reader = LineSplitter()
    frames = b"".join(
        b'  File "run.py", line %d, in f\n    call(%d)\n    ~~~~^^^\n' % (n, n) for n in range(4)
    )
    for _ in reader.feed(b"Traceback (most recent call last):\n" + frames + b"KeyError: 1\n", 0.0):
        pass
    assert reader.last_lines == (
        'File "run.py", line 2, in f',
        "call(2)",
        'File "run.py", line 3, in f',
        "call(3)",
        "KeyError: 1",
    )


def test_skipped_lines_are_counted_and_the_last_ones_kept() -> None:
    reader = LineSplitter()
    lines = [*reader.feed(b"a\nhalf", 0.0)]
    reader.skip(b" line\nb\nc\nrest")
    lines += reader.flush()

    assert lines == ["a", "dropped 4 lines"]
    assert reader.last_lines == ("a", "half line", "b", "c", "rest")
