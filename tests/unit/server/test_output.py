"""Standard output, for which the server never waits."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from cogwork.server.output import Output

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        with contextlib.suppress(OSError):
            os.close(end)


def everything_from(read: int, write: int) -> str:
    os.close(write)
    with os.fdopen(read, "rb", closefd=False) as stream:
        return stream.read().decode()


def test_lines_come_in_order(pipe: Pipe) -> None:
    read, write = pipe
    output = Output(write)
    for number in range(500):
        output.line(str(number))
    output.write("no end")
    output.close()
    assert everything_from(read, write) == "".join(f"{n}\n" for n in range(500)) + "no end"


def test_what_is_no_text_is_written_as_far_as_it_can_be(pipe: Pipe) -> None:
    output = Output(pipe[1])
    output.line("ü \udcff")
    output.close()
    assert everything_from(*pipe) == "ü \\udcff\n"


@pytest.mark.parametrize("blocking", [True, False])
def test_a_reader_that_does_not_read_is_not_waited_for(pipe: Pipe, blocking: bool) -> None:
    read, write = pipe
    os.set_blocking(write, blocking)
    output = Output(write, most=300_000)
    line = "x" * 999
    began = time.monotonic()
    for _ in range(1000):
        output.line(line)
    assert time.monotonic() - began < 1
    reader = threading.Thread(target=lambda: got.append(drain(read)))
    got: list[str] = []
    reader.start()
    output.close()
    os.close(write)
    reader.join()
    lines = got[0].splitlines()
    (missing,) = (each for each in lines if not each.startswith("x"))
    written = len(lines) - 1
    assert missing == f"{1000 - written} lines are missing: nobody read the log in time"
    assert written >= 300


def drain(read: int) -> str:
    with os.fdopen(read, "rb", closefd=False) as stream:
        return stream.read().decode()


def test_a_reader_that_never_reads_does_not_keep_the_process(pipe: Pipe) -> None:
    output = Output(pipe[1])
    output.write("x" * 200_000)
    began = time.monotonic()
    output.close()
    assert time.monotonic() - began < 3
    # Lets the thread end.
    os.close(pipe[0])


def test_a_reader_that_is_gone_is_no_trouble(pipe: Pipe) -> None:
    read, write = pipe
    output = Output(write)
    os.close(read)
    for _ in range(100):
        output.line("anybody there?")
    output.close()


def test_a_signal_may_speak_while_somebody_speaks(pipe: Pipe) -> None:
    read, write = pipe
    output = Output(write)
    before = signal.signal(signal.SIGALRM, lambda *_: output.line("signal"))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        reader = threading.Thread(target=lambda: got.append(drain(read)))
        got: list[str] = []
        reader.start()
        for _ in range(20_000):
            output.line("line")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    output.close()
    os.close(write)
    reader.join()
    lines = got[0].splitlines()
    assert lines.count("line") == 20_000
    assert set(lines) == {"line", "signal"}
