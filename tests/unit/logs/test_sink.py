"""The sink's promises: order, a bound, and nobody who waits for the writer."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.sizes import size

from cogwork.logs.sink import MAX_PENDING_BYTES, Sink, format_missing_notice

DEADLINE = 10.0
AT_ONCE = 1.0
"""Far more than a put needs, far less than anybody waits for a writer."""


class Writer:
    """Keeps what it is given; stands still between `hold` and `release`."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self._free = threading.Event()
        self._free.set()
        self.writing = threading.Event()

    def __call__(self, lines: bytes) -> None:
        self.writing.set()
        assert self._free.wait(DEADLINE)
        self.batches.append(lines)

    def hold(self) -> None:
        self.writing.clear()
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    @property
    def lines(self) -> list[bytes]:
        return b"".join(self.batches).splitlines(keepends=True)


@pytest.fixture
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.release()


def held(writer: Writer, max_bytes: int = MAX_PENDING_BYTES) -> Sink:
    """A sink whose writer holds the line `first`."""
    writer.hold()
    sink = Sink("test", writer, max_bytes)
    sink.put(b"first\n")
    assert writer.writing.wait(DEADLINE)
    return sink


def numbered(count: int, mark: str = "") -> list[bytes]:
    return [f"{mark}{number}\n".encode() for number in range(count)]


def test_lines_are_written_in_order(writer: Writer) -> None:
    sink = Sink("test", writer)
    for line in numbered(10_000):
        sink.put(line)
    sink.close(DEADLINE)
    assert writer.lines == numbered(10_000)


def test_what_waits_is_written_at_once(writer: Writer) -> None:
    sink = held(writer)
    for line in numbered(1000):
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.batches == [b"first\n", b"".join(numbered(1000))]


def test_a_line_does_not_wait_for_the_next_one(writer: Writer) -> None:
    sink = Sink("test", writer)
    for line in numbered(100):
        writer.writing.clear()
        sink.put(line)
        assert writer.writing.wait(DEADLINE)
    sink.close(DEADLINE)
    assert writer.lines == numbered(100)


def test_nothing_put_nothing_written(writer: Writer) -> None:
    Sink("test", writer).close(DEADLINE)
    assert writer.batches == []


def test_what_exceeds_the_bound_is_left_out_and_counted(writer: Writer) -> None:
    sink = held(writer, max_bytes=100)
    for line in [b"x" * 49 + b"\n"] * 5:
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines == [
        b"first\n",
        *[b"x" * 49 + b"\n"] * 2,
        b"dropped 3 lines here: they were logged faster than they could be written\n",
    ]


def test_what_is_missing_is_missing_in_one_place(writer: Writer) -> None:
    sink = held(writer, max_bytes=100)
    for line in (b"fits\n", b"x" * 100 + b"\n", b"would fit\n"):
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines[:2] == [b"first\n", b"fits\n"]
    assert writer.lines[2].startswith(b"dropped 2 lines here: ")
    assert len(writer.lines) == 3


def test_the_bound_is_free_again_once_the_writer_has_taken_what_waits(writer: Writer) -> None:
    sink = held(writer, max_bytes=10)
    sink.put(b"waits\n")
    sink.put(b"too much\n")
    writer.release()
    written = wait_for(writer, b"dropped 1 line here")
    sink.put(b"again\n")
    sink.close(DEADLINE)
    assert written[:2] == [b"first\n", b"waits\n"]
    assert writer.lines[-1] == b"again\n"


def test_a_line_beyond_the_bound_is_told_of_without_another(writer: Writer) -> None:
    sink = Sink("test", writer, max_bytes=10)
    sink.put(b"x" * 20 + b"\n")
    assert len(wait_for(writer, b"dropped 1 line here")) == 1
    sink.put(b"y" * 20 + b"\n")
    sink.close(DEADLINE)
    assert len(writer.lines) == 2


def wait_for(writer: Writer, start: bytes) -> list[bytes]:
    deadline = time.monotonic() + DEADLINE
    while not any(line.startswith(start) for line in writer.lines):
        assert time.monotonic() < deadline, f"{start!r} does not come: {writer.lines}"
        time.sleep(0.001)
    return writer.lines


def test_a_writer_that_hangs_does_not_hold_up_put(writer: Writer) -> None:
    sink = held(writer)
    started = time.monotonic()
    for line in [bytes(1023) + b"\n"] * (MAX_PENDING_BYTES // 1024 + 10):
        sink.put(line)
    assert time.monotonic() - started < AT_ONCE
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines[-1].startswith(b"dropped 10 lines here: ")


def test_closing_writes_what_waits(writer: Writer) -> None:
    sink = held(writer)
    for line in numbered(100):
        sink.put(line)
    closing = threading.Thread(target=sink.close, args=(DEADLINE,))
    closing.start()
    writer.release()
    closing.join()
    assert writer.lines == [b"first\n", *numbered(100)]


def test_closing_does_not_wait_for_a_writer_that_hangs(writer: Writer) -> None:
    sink = held(writer)
    sink.put(b"second\n")
    started = time.monotonic()
    sink.close(timeout=0.05)
    assert 0.05 <= time.monotonic() - started < AT_ONCE
    assert writer.batches == []


def test_closing_again_changes_nothing(writer: Writer) -> None:
    sink = Sink("test", writer)
    sink.put(b"one\n")
    sink.close(DEADLINE)
    sink.put(b"too late\n")
    sink.close(DEADLINE)
    assert writer.lines == [b"one\n"]


def test_all_that_was_put_before_the_end_is_written_however_close(writer: Writer) -> None:
    for _ in range(size(ci=300, full=10_000)):
        writer.batches.clear()
        sink = Sink("test", writer)
        sink.put(b"one\n")
        sink.put(b"two\n")
        sink.close(DEADLINE)
        assert writer.lines == [b"one\n", b"two\n"]


def test_each_of_several_threads_keeps_its_order(writer: Writer) -> None:
    sink = Sink("test", writer)
    marks, count = "abcdefgh", size(ci=3000, full=100_000)
    with ThreadPoolExecutor(len(marks)) as pool:
        for mark in marks:
            pool.submit(put_all, sink, numbered(count, mark))
    sink.close(DEADLINE)
    for mark in marks:
        assert [line for line in writer.lines if line.startswith(mark.encode())] == numbered(
            count, mark
        )


def test_several_threads_do_not_break_the_bound(writer: Writer) -> None:
    sink = held(writer, max_bytes=10_000)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(put_all, sink, [b"123456789\n"] * 1000)
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines[1:-1] == [b"123456789\n"] * 1000
    assert writer.lines[-1].startswith(b"dropped 7000 lines here: ")


def put_all(sink: Sink, lines: list[bytes]) -> None:
    for line in lines:
        sink.put(line)


class Interrupting(bytes):
    """A line during whose put a signal comes."""

    def __len__(self) -> int:
        signal.raise_signal(signal.SIGUSR1)
        return super().__len__()


def test_a_signal_handler_puts_a_line_while_its_thread_is_inside_put(writer: Writer) -> None:
    sink = Sink("test", writer)
    before = signal.signal(signal.SIGUSR1, lambda *_: sink.put(b"from the handler\n"))
    try:
        sink.put(Interrupting(b"interrupted\n"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    sink.close(DEADLINE)
    assert writer.lines == [*[b"from the handler\n"] * 2, b"interrupted\n"]


def test_signals_anywhere_inside_put_neither_stop_nor_reorder_anything(writer: Writer) -> None:
    """A writer that is not woken for one of the two lines sleeps for good."""
    sink = Sink("test", writer)
    rounds = size(ci=3000, full=50_000)
    with Alarms(sink) as alarms:
        for number in range(rounds):
            writer.writing.clear()
            alarms.one_soon()
            sink.put(b"%d\n" % number)
            # Idle again and again: only an idle writer has to be woken.
            assert writer.writing.wait(DEADLINE), f"nothing is written after {number}"
    sink.close(DEADLINE)
    lines = writer.lines
    assert [line for line in lines if not line.startswith(b"alarm")] == numbered(rounds)
    alarm_lines = [line for line in lines if line.startswith(b"alarm")]
    assert alarm_lines == numbered(alarms.handled, "alarm")
    assert len(alarm_lines) > rounds / 10


class Alarms:
    """Signals whose handler puts a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.handled = 0

    def __enter__(self) -> Alarms:
        self._before = signal.signal(signal.SIGALRM, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def one_soon(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-5))

    def _handle(self, *_: object) -> None:
        self._sink.put(b"alarm%d\n" % self.handled)
        self.handled += 1


def test_missing_lines_in_words() -> None:
    assert format_missing_notice(1, "why") == b"dropped 1 line here: why\n"
    assert format_missing_notice(2, "why") == b"dropped 2 lines here: why\n"
    assert re.fullmatch(rb"dropped 3 lines .*: \?\n", format_missing_notice(3, "\udcff"))
