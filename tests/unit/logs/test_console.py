"""Writing to standard output without blocking, and the format of a line."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.support.sizes import limit

from cogwork.logs.console import as_colored_text, console_format, descriptor_writer
from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.sink import Sink

Pipe = tuple[int, int]
ENTRY = Entry(1_000_000.5, 40, "rdk.config", "follow.py:12", "it is wrong", {"file": "m.json"})


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        with contextlib.suppress(OSError):
            os.close(end)


def drain(read: int) -> bytes:
    with os.fdopen(read, "rb", closefd=False) as stream:
        return stream.read()


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    read, write = pipe
    sink = Sink("test", descriptor_writer(write))
    for number in range(500):
        sink.put(b"%d\n" % number)
    sink.close()
    os.close(write)
    assert drain(read) == b"".join(b"%d\n" % number for number in range(500))


@pytest.mark.parametrize("blocking", [True, False])
def test_slow_reader_does_not_block_put(pipe: Pipe, blocking: bool) -> None:
    read, write = pipe
    os.set_blocking(write, blocking)
    sink = Sink("test", descriptor_writer(write), max_bytes=300_000)
    started = time.monotonic()
    for _ in range(1000):
        sink.put(b"x" * 999 + b"\n")
    assert time.monotonic() - started < limit(1)
    outputs: list[bytes] = []
    reader = threading.Thread(target=lambda: outputs.append(drain(read)))
    reader.start()
    sink.close()
    os.close(write)
    reader.join()
    lines = outputs[0].splitlines()
    counted = sum(int(line.split()[1]) for line in lines if not line.startswith(b"x"))
    written = sum(line.startswith(b"x") for line in lines)
    assert written >= 300
    assert counted + written == 1000


def test_stuck_reader_does_not_block_close(pipe: Pipe) -> None:
    sink = Sink("test", descriptor_writer(pipe[1]))
    sink.put(b"x" * 200_000)
    started = time.monotonic()
    sink.close()
    assert time.monotonic() - started < limit(3)
    os.close(pipe[0])  # so that the thread ends


def test_closed_reader_is_tolerated(pipe: Pipe) -> None:
    read, write = pipe
    sink = Sink("test", descriptor_writer(write))
    os.close(read)
    for _ in range(100):
        sink.put(b"anybody there?\n")
    sink.close()


def test_text_format() -> None:
    assert as_text(ENTRY) == (
        '1970-01-12T13:46:40.500Z\tERROR\trdk.config\tfollow.py:12\tit is wrong\t{"file": "m.json"}'
    )


def test_json_format() -> None:
    assert json.loads(as_json(ENTRY)) == {
        "time": "1970-01-12T13:46:40.500Z",
        "level": "error",
        "logger": "rdk.config",
        "place": "follow.py:12",
        "message": "it is wrong",
        "fields": {"file": "m.json"},
    }


def test_control_characters_in_a_message_are_escaped() -> None:
    entry = Entry(0.0, 20, "rdk", "x.py:1", "a\x1b[2Jb\r\x07c\nd\te")
    assert as_text(entry).endswith("\ta\\x1b[2Jb\\r\\x07c\\nd\\te")


FORGED = "x\n2026-01-01T00:00:00.000Z\tERROR\trdk\tx\tforged\x1b]0;title\x07\u202e\u2028\u061c"


@pytest.mark.parametrize("render", [as_text, as_colored_text, as_json])
def test_forged_text_cannot_start_a_line_or_control_the_terminal(
    render: Callable[[Entry], str],
) -> None:
    for entry in (
        Entry(0.0, 20, FORGED, "x.py:1", "a"),
        Entry(0.0, 20, "rdk", FORGED, "a"),
        Entry(0.0, 20, "rdk", "x.py:1", FORGED),
        Entry(0.0, 20, "rdk", "x.py:1", "a", {FORGED: 1}),
        Entry(0.0, 20, "rdk", "x.py:1", "a", {"field": FORGED}),
        Entry(0.0, 20, "rdk", "x.py:1", "a", trace=FORGED),
    ):
        lines = render(entry).split("\n")
        assert not any(line.startswith("2026") for line in lines)
        assert all(line.startswith("    ") for line in lines[1:])
        assert not set("\x07\u202e\u2028\u061c") & set("".join(lines))
        assert "\x1b]" not in "".join(lines)


def test_traceback_lines_are_indented() -> None:
    entry = Entry(0.0, 20, "rdk", "x.py:1", "failed", trace="Traceback:\n\tFile x\n    raise")
    assert as_text(entry).split("\n")[1:] == [
        "    Traceback:",
        "        File x",
        "        raise",
    ]


def test_color_is_used_only_for_terminals_that_support_it(pipe: Pipe) -> None:
    controller, terminal = pty.openpty()
    try:
        assert console_format(terminal, {}) is as_colored_text
        assert console_format(terminal, {"NO_COLOR": "1"}) is as_text
        assert console_format(terminal, {"TERM": "dumb"}) is as_text
        assert console_format(pipe[1], {}) is as_text
        assert console_format(terminal, {"COGWORK_LOG_FORMAT": "json"}) is as_json
    finally:
        os.close(controller)
        os.close(terminal)
    assert as_colored_text(ENTRY).startswith(
        "\x1b[2m1970-01-12T13:46:40.500Z\x1b[0m\t\x1b[31mERROR\x1b"
    )
