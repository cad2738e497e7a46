import logging
import threading

from cogwork.logs.entry import Entry
from cogwork.logs.incoming_lines import IncomingLines
from cogwork.logs.record_codec import encode_entry

DEADLINE = 30.0


def line(message: str) -> Entry:
    return Entry(1.0, logging.INFO, "rdk.test", "x.py:1", message)


SIZE = len(encode_entry(line("a")))


def test_lines_are_taken_once_in_order() -> None:
    incoming = IncomingLines(10 * SIZE, SIZE)
    incoming.put(line("a"))
    incoming.put(line("b"))
    assert incoming.take() == ([encode_entry(line("a")), encode_entry(line("b"))], 0)
    assert incoming.take() == ([], 0)


def test_lines_that_are_too_large_or_too_many_are_dropped_and_counted() -> None:
    incoming = IncomingLines(2 * SIZE, SIZE)
    for message in ("too long", "a", "b", "c"):
        incoming.put(line(message))
    pending, dropped = incoming.take()
    assert (len(pending), dropped) == (2, 2)


def test_memory_is_free_again_when_lines_are_forgotten() -> None:
    incoming = IncomingLines(SIZE, SIZE)
    incoming.put(line("a"))
    incoming.take()
    assert not incoming.wait_until_empty(0)
    incoming.put(line("b"))
    assert incoming.take() == ([], 1)
    incoming.forget(SIZE)
    assert incoming.wait_until_empty(0)
    incoming.put(line("c"))
    assert len(incoming.take()[0]) == 1


def test_new_line_ends_a_wait() -> None:
    incoming = IncomingLines(SIZE, SIZE)
    waiting = threading.Thread(target=incoming.wait, args=(DEADLINE,))
    waiting.start()
    incoming.put(line("a"))
    waiting.join(DEADLINE)
    assert not waiting.is_alive()


def test_interrupt_ends_a_wait_although_no_lines_were_taken() -> None:
    incoming = IncomingLines(SIZE, SIZE)
    incoming.put(line("a"))
    incoming.wait(None)
    incoming.interrupt()
    incoming.wait(None)


def test_listener_is_called_once() -> None:
    incoming, calls = IncomingLines(SIZE, SIZE), []
    incoming.notify_once(lambda: calls.append("first"))
    incoming.notify_once(lambda: calls.append("second"))
    incoming.notify()
    incoming.notify()
    assert calls == ["second"]


def test_closed_loop_of_a_listener_does_no_harm() -> None:
    def fail() -> None:
        raise RuntimeError("Event loop is closed")

    incoming = IncomingLines(SIZE, SIZE)
    incoming.notify_once(fail)
    incoming.notify()
