"""The sink: order, bounded memory, and callers that never wait for the writer."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.sizes import limit, size
from tests.support.waiting import block_until

from cogwork.logs.sink import MAX_PENDING_BYTES, Sink, format_missing_notice

DEADLINE = 30.0
PUT_SECONDS = limit(1.0)
"""Much more than a put needs, much less than a wait for the writer."""


class Writer:
    """Store the written batches; block between `hold` and `release`."""

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


def blocked_sink(writer: Writer, max_bytes: int = MAX_PENDING_BYTES) -> Sink:
    """Return a sink whose writer is blocked at the line `first`."""
    writer.hold()
    sink = Sink("test", writer, max_bytes)
    sink.put(b"first\n")
    assert writer.writing.wait(DEADLINE)
    return sink


def numbered_lines(count: int, mark: str = "") -> list[bytes]:
    return [f"{mark}{number}\n".encode() for number in range(count)]


def test_lines_are_written_in_order(writer: Writer) -> None:
    sink = Sink("test", writer)
    for line in numbered_lines(10_000):
        sink.put(line)
    sink.close(DEADLINE)
    assert writer.lines == numbered_lines(10_000)


def test_pending_lines_are_written_in_one_batch(writer: Writer) -> None:
    sink = blocked_sink(writer)
    for line in numbered_lines(1000):
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.batches == [b"first\n", b"".join(numbered_lines(1000))]


def test_single_line_is_written_without_delay(writer: Writer) -> None:
    sink = Sink("test", writer)
    for line in numbered_lines(100):
        writer.writing.clear()
        sink.put(line)
        assert writer.writing.wait(DEADLINE)
    sink.close(DEADLINE)
    assert writer.lines == numbered_lines(100)


def test_close_without_lines_writes_nothing(writer: Writer) -> None:
    Sink("test", writer).close(DEADLINE)
    assert writer.batches == []


def test_lines_over_the_limit_are_dropped_and_counted(writer: Writer) -> None:
    sink = blocked_sink(writer, max_bytes=100)
    for line in [b"x" * 49 + b"\n"] * 5:
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines == [
        b"first\n",
        *[b"x" * 49 + b"\n"] * 2,
        b"dropped 3 lines here: they were logged faster than they could be written\n",
    ]


def test_all_lines_after_the_first_dropped_one_are_dropped(writer: Writer) -> None:
    sink = blocked_sink(writer, max_bytes=100)
    for line in (b"fits\n", b"x" * 100 + b"\n", b"would fit\n"):
        sink.put(line)
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines[:2] == [b"first\n", b"fits\n"]
    assert writer.lines[2].startswith(b"dropped 2 lines here: ")
    assert len(writer.lines) == 3


def test_limit_is_free_again_after_the_pending_lines_are_written(writer: Writer) -> None:
    sink = blocked_sink(writer, max_bytes=10)
    sink.put(b"waits\n")
    sink.put(b"too much\n")
    writer.release()
    written = wait_for_line(writer, b"dropped 1 line here")
    sink.put(b"again\n")
    sink.close(DEADLINE)
    assert written[:2] == [b"first\n", b"waits\n"]
    assert writer.lines[-1] == b"again\n"


def test_dropped_line_is_reported_without_another_line(writer: Writer) -> None:
    sink = Sink("test", writer, max_bytes=10)
    sink.put(b"x" * 20 + b"\n")
    assert len(wait_for_line(writer, b"dropped 1 line here")) == 1
    sink.put(b"y" * 20 + b"\n")
    sink.close(DEADLINE)
    assert len(writer.lines) == 2


def wait_for_line(writer: Writer, start: bytes) -> list[bytes]:
    block_until(lambda: any(line.startswith(start) for line in writer.lines))
    return writer.lines


def test_hanging_writer_does_not_block_put(writer: Writer) -> None:
    sink = blocked_sink(writer)
    started = time.monotonic()
    for line in [bytes(1023) + b"\n"] * (MAX_PENDING_BYTES // 1024 + 10):
        sink.put(line)
    assert time.monotonic() - started < PUT_SECONDS
    writer.release()
    sink.close(DEADLINE)
    assert writer.lines[-1].startswith(b"dropped 10 lines here: ")


def test_close_writes_pending_lines(writer: Writer) -> None:
    sink = blocked_sink(writer)
    for line in numbered_lines(100):
        sink.put(line)
    closing = threading.Thread(target=sink.close, args=(DEADLINE,))
    closing.start()
    writer.release()
    closing.join()
    assert writer.lines == [b"first\n", *numbered_lines(100)]


def test_close_does_not_wait_for_a_hanging_writer(writer: Writer) -> None:
    sink = blocked_sink(writer)
    sink.put(b"second\n")
    started = time.monotonic()
    sink.close(timeout=0.05)
    assert 0.05 <= time.monotonic() - started < PUT_SECONDS
    assert writer.batches == []


def test_close_is_idempotent(writer: Writer) -> None:
    sink = Sink("test", writer)
    sink.put(b"one\n")
    sink.close(DEADLINE)
    sink.put(b"too late\n")
    sink.close(DEADLINE)
    assert writer.lines == [b"one\n"]


def test_lines_put_just_before_close_are_written(writer: Writer) -> None:
    for _ in range(size(ci=300, full=10_000)):
        writer.batches.clear()
        sink = Sink("test", writer)
        sink.put(b"one\n")
        sink.put(b"two\n")
        sink.close(DEADLINE)
        assert writer.lines == [b"one\n", b"two\n"]


def test_lines_of_each_thread_stay_in_order(writer: Writer) -> None:
    sink = Sink("test", writer)
    marks, count = "abcdefgh", size(ci=3000, full=100_000)
    with ThreadPoolExecutor(len(marks)) as pool:
        for mark in marks:
            pool.submit(put_all, sink, numbered_lines(count, mark))
    sink.close(DEADLINE)
    for mark in marks:
        assert [line for line in writer.lines if line.startswith(mark.encode())] == numbered_lines(
            count, mark
        )


def test_limit_holds_for_several_threads(writer: Writer) -> None:
    sink = blocked_sink(writer, max_bytes=10_000)
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


class InterruptingLine(bytes):
    """A line that raises a signal during its put."""

    def __len__(self) -> int:
        signal.raise_signal(signal.SIGUSR1)
        return super().__len__()


def test_signal_handler_can_put_during_a_put(writer: Writer) -> None:
    sink = Sink("test", writer)
    before = signal.signal(signal.SIGUSR1, lambda *_: sink.put(b"from the handler\n"))
    try:
        sink.put(InterruptingLine(b"interrupted\n"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    sink.close(DEADLINE)
    assert writer.lines == [*[b"from the handler\n"] * 2, b"interrupted\n"]


def test_signals_during_put_neither_block_nor_reorder_lines(writer: Writer) -> None:
    """A writer that is not woken for one of the two lines would sleep forever."""
    sink = Sink("test", writer)
    rounds = size(ci=3000, full=50_000)
    with AlarmSignals(sink) as alarms:
        for number in range(rounds):
            writer.writing.clear()
            alarms.schedule_alarm()
            sink.put(b"%d\n" % number)
            # Let the writer become idle each time: only an idle writer has to be woken.
            assert writer.writing.wait(DEADLINE), f"nothing is written after {number}"
    sink.close(DEADLINE)
    lines = writer.lines
    assert [line for line in lines if not line.startswith(b"alarm")] == numbered_lines(rounds)
    alarm_lines = [line for line in lines if line.startswith(b"alarm")]
    assert alarm_lines == numbered_lines(alarms.handled, "alarm")
    assert len(alarm_lines) > rounds / 10


class AlarmSignals:
    """Raise alarm signals whose handler puts a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.handled = 0

    def __enter__(self) -> AlarmSignals:
        self._before = signal.signal(signal.SIGALRM, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def schedule_alarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-5))

    def _handle(self, *_: object) -> None:
        self._sink.put(b"alarm%d\n" % self.handled)
        self.handled += 1


def test_format_missing_notice() -> None:
    assert format_missing_notice(1, "why") == b"dropped 1 line here: why\n"
    assert format_missing_notice(2, "why") == b"dropped 2 lines here: why\n"
    assert re.fullmatch(rb"dropped 3 lines .*: \?\n", format_missing_notice(3, "\udcff"))
