from __future__ import annotations

from cogwork.core.clock import ManualClock
from cogwork.front.http1_monitor import Http1Monitor

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_connection_is_busy_from_a_complete_head_until_its_response() -> None:
    monitor = Http1Monitor(ManualClock(0.0).monotonic)
    for number in range(1, 3):
        for byte in HEAD[:-1]:
            assert monitor.feed_client(memoryview(bytes([byte]))) == bytes([byte])
            assert not monitor.is_busy
        monitor.feed_client(memoryview(HEAD[-1:]))
        assert monitor.is_busy
        monitor.feed_server(memoryview(b"HTTP/1.1 200 OK\r\n"))
        assert (monitor.is_busy, monitor.request_count) == (False, number)


def test_client_that_never_completes_a_head_stays_unused() -> None:
    monitor = Http1Monitor(ManualClock(0.0).monotonic)
    for _ in range(100):
        monitor.feed_client(memoryview(b"X-A: b\r\n"))
    assert (monitor.is_busy, monitor.request_count) == (False, 0)


async def test_bytes_of_a_response_count_as_activity_but_dripping_heads_do_not() -> None:
    clock = ManualClock(0.0)
    monitor = Http1Monitor(clock.monotonic)
    await clock.advance(5.0)
    monitor.feed_client(memoryview(b"GET / HT"))
    assert monitor.last_active == 0.0
    monitor.feed_client(memoryview(b"TP/1.1\r\n\r\n"))
    assert monitor.last_active == 5.0
    await clock.advance(2.0)
    monitor.feed_server(memoryview(b"line\n"))
    assert monitor.last_active == 7.0
