from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

import pytest
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st
from tests.support.network import http2_frames as frames

from cogwork.core.limits.byte_budget import ByteBudget
from cogwork.front.burst import Burst
from cogwork.front.http2_frames import ProtocolViolation
from cogwork.front.http2_headers import has_utf8_headers
from cogwork.front.http2_monitor import Http2Monitor, MonitorLimits
from cogwork.front.uploads import Uploads

PATH = "/viam.robot.v1.RobotService/ResourceNames"
REPLY = b"\x88"


class Connection:
    def __init__(self, limits: MonitorLimits | None = None) -> None:
        self.now = 0.0
        self.monitor = Http2Monitor(lambda: self.now, limits)
        self.send(frames.opening())

    def send(self, data: bytes = b"") -> bytes:
        """Return what is forwarded."""
        return bytes(self.monitor.feed_client(memoryview(data)))

    def answer(self, data: bytes) -> None:
        self.monitor.feed_server(memoryview(data))


def response_headers(stream: int, *, end: bool = True) -> bytes:
    flags = 0x4 | (0x1 if end else 0)
    return len(REPLY).to_bytes(3, "big") + bytes([1, flags]) + stream.to_bytes(4, "big") + REPLY


def test_connection_is_busy_until_its_call_is_answered() -> None:
    connection = Connection()
    seen = [(connection.monitor.is_busy, connection.monitor.request_count)]
    connection.send(frames.call(1, PATH, b"hello"))
    seen.append((connection.monitor.is_busy, connection.monitor.request_count))
    connection.answer(response_headers(1, end=False))
    seen.append((connection.monitor.is_busy, connection.monitor.request_count))
    connection.now = 5.0
    connection.answer(response_headers(1))
    seen.append((connection.monitor.is_busy, connection.monitor.request_count))
    assert seen == [(False, 0), (True, 1), (True, 1), (False, 1)]
    assert connection.monitor.last_active == 5.0


def test_reset_ends_a_call() -> None:
    connection = Connection()
    connection.send(frames.call(1, PATH) + frames.call(3, PATH))
    connection.send(frames.reset(1))
    assert connection.monitor.is_busy
    connection.answer(frames.reset(3))
    assert not connection.monitor.is_busy


def test_headers_without_message_are_waiting() -> None:
    connection = Connection()
    connection.now = 3.0
    connection.send(frames.headers(1, PATH))
    connection.now = 4.0
    connection.send(frames.headers(3, PATH))
    seen = [(connection.monitor.waiting_since, connection.monitor.is_busy)]
    connection.send(frames.data(1, b"x"))
    seen.append((connection.monitor.waiting_since, connection.monitor.is_busy))
    connection.answer(response_headers(3, end=False))
    seen.append((connection.monitor.waiting_since, connection.monitor.is_busy))
    assert seen == [(3.0, False), (4.0, True), (None, True)]


def test_too_many_waiting_requests_are_a_violation() -> None:
    connection = Connection(MonitorLimits(waiting=3))
    for number in (1, 3, 5):
        connection.send(frames.headers(number, PATH))
    with pytest.raises(ProtocolViolation, match="4 requests have sent headers but no message"):
        connection.send(frames.headers(7, PATH))


def message(size: int, *, complete: bool = True) -> bytes:
    """Encode a gRPC message, or all but its last byte."""
    return (b"\x00" + size.to_bytes(4, "big") + bytes(size))[: None if complete else -1]


@pytest.mark.parametrize("pieces", [(0,), (1,), (5,), (3, 7), (1, 2, 3, 4, 5, 6, 7)])
def test_request_waits_until_its_first_message_is_complete(pieces: tuple[int, ...]) -> None:
    connection = Connection()
    connection.now = 3.0
    connection.send(frames.headers(1, PATH))
    whole = message(20)
    cuts = [0, *pieces, len(whole) - 1]
    for start, end in itertools.pairwise(cuts):
        connection.now += 1.0
        connection.send(frames.data(1, whole[start:end], end=False))
        assert not connection.monitor.is_busy
    assert connection.monitor.waiting_since == connection.now
    connection.send(frames.data(1, whole[-1:], end=False))
    assert connection.monitor.is_busy
    assert connection.monitor.waiting_since is None


def test_message_in_bytes_that_arrive_one_by_one_is_complete_at_its_end() -> None:
    connection = Connection()
    connection.send(frames.headers(1, PATH))
    *most, last = frames.data(1, message(20), end=False)
    for byte in most:
        connection.send(bytes([byte]))
    connection.send(bytes([last]))
    assert connection.monitor.is_busy


def test_too_many_incomplete_messages_are_a_violation() -> None:
    connection = Connection(MonitorLimits(incomplete=2))
    for number in (1, 3):
        connection.send(frames.headers(number, PATH))
        connection.send(frames.data(number, message(9, complete=False), end=False))
    connection.send(frames.headers(5, PATH))
    with pytest.raises(ProtocolViolation, match="3 requests have sent incomplete messages"):
        connection.send(frames.data(5, b"\x00", end=False))


def limited(most: int) -> Connection:
    """Return a connection with so many places for requests that began a moment ago."""
    connection = Connection()
    connection.monitor = Http2Monitor(lambda: connection.now, burst=Burst(lambda: most))
    connection.send(frames.opening())
    return connection


def test_requests_over_the_burst_limit_are_held() -> None:
    connection = limited(2)
    first, second, third = (frames.call(number, PATH, b"x") for number in (1, 3, 5))
    assert connection.send(first + second + third) == first + second
    assert connection.send() == b""
    assert connection.monitor.held_size == len(third)
    connection.answer(response_headers(1))
    assert connection.send() == third
    assert connection.monitor.held_size == 0


def test_connection_with_a_held_request_is_busy() -> None:
    connection = limited(1)
    connection.send(frames.call(1, PATH) + frames.reset(1))
    assert not connection.monitor.is_busy
    assert connection.send(frames.call(3, PATH)) == b""
    assert connection.monitor.is_busy


def test_split_headers_do_not_get_around_the_burst_limit() -> None:
    connection = limited(1)
    connection.send(frames.call(1, PATH))
    second = frames.headers(3, PATH)
    assert connection.send(second[:12]) == b""
    assert connection.send(second[12:]) == b""
    connection.now = 0.3
    assert connection.send() == second


def test_what_running_requests_need_goes_ahead_of_held_ones() -> None:
    """Otherwise a client could not make room for the replies that it waits for."""
    connection = limited(1)
    connection.send(frames.headers(1, PATH))
    held = frames.call(3, PATH, b"x") + frames.widened(3, 100) + frames.reset(3)
    ahead = [
        frames.data(1, b"more", end=False),
        frames.widened(0, 100),
        frames.widened(1, 100),
        frames.ping(),
        frames.reset(1),
    ]
    mixed = held + b"".join(frame + frames.settings() for frame in ahead)
    assert connection.send(mixed) == b"".join(ahead)
    connection.now = 0.3
    assert connection.send() == held + frames.settings() * len(ahead)


@given(st.lists(st.integers(0, 1000), max_size=12), st.integers(1, 5))
def test_held_frames_are_forwarded_whole_and_in_order(cuts: list[int], most: int) -> None:
    connection = limited(most)
    calls = {number: frames.call(number, PATH, b"x" * number) for number in range(1, 20, 2)}
    updates = {number: frames.widened(0, number) for number in calls}
    sent = b"".join(calls[number] + updates[number] for number in calls)
    ends = [*sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    forwarded = b""
    for at, end in zip([0, *ends], ends, strict=False):
        forwarded += connection.send(sent[at:end])
    for number in calls:
        connection.answer(response_headers(number))
        forwarded += connection.send()
    assert connection.monitor.held_size == 0
    assert len(forwarded) == len(sent)
    for kept in (calls, updates):
        places = [forwarded.index(frame) for frame in kept.values()]
        assert places == sorted(places)


def test_flood_behind_a_held_request_is_still_limited() -> None:
    connection = limited(1)
    connection.send(frames.call(1, PATH) + frames.call(3, PATH))
    with pytest.raises(ProtocolViolation, match="frames without data in a second"):
        connection.send(frames.ping() * 2000)


def test_connection_whose_split_request_was_answered_is_not_busy() -> None:
    connection = limited(1)
    connection.send(frames.call(1, PATH))
    second = frames.call(3, PATH)
    connection.send(second[:12])
    connection.send(second[12:])
    connection.answer(response_headers(1))
    connection.send()
    connection.answer(response_headers(3))
    assert not connection.monitor.is_busy


def test_long_requests_do_not_count_as_a_burst() -> None:
    connection = limited(1)
    connection.send(frames.call(1, PATH))
    assert connection.send(frames.call(3, PATH)) == b""
    connection.now = 0.3
    assert connection.send() == frames.call(3, PATH)


def test_cancelled_request_counts_toward_the_burst_until_the_server_has_ended_it() -> None:
    connection = Connection()
    burst = Burst(lambda: 1)
    connection.monitor = Http2Monitor(lambda: connection.now, burst=burst)
    connection.send(frames.opening())
    connection.send(frames.call(1, PATH) + frames.reset(1))
    call = frames.call(3, PATH)
    assert connection.send(call) == b""
    burst.ask(connection.now + 0.01)
    burst.settle(working=0)
    assert connection.send() == call


def test_client_that_pings_for_each_reply_is_not_limited() -> None:
    """As grpc-go does, to measure its bandwidth."""
    connection = Connection(MonitorLimits(control_frames=10))
    for stream in range(1, 401, 2):
        connection.send(frames.call(stream, PATH))
        connection.answer(response_headers(stream, end=False) + response_headers(stream))
        connection.send(frames.ping())
    assert connection.monitor.request_count == 200
    assert not connection.monitor.is_busy


@pytest.mark.parametrize(
    "frame", [frames.ping(), frames.settings(), frames.data(1, b"", end=False)]
)
def test_control_frames_per_second_are_limited(frame: bytes) -> None:
    connection = Connection(MonitorLimits(control_frames=10))
    for second in range(5):
        connection.now = float(second)
        connection.send(frame * 9)
    with pytest.raises(ProtocolViolation, match="more than 10 frames without data"):
        connection.send(frame * 30)


@pytest.mark.parametrize("piece", [1, 2, 5, 8, 9, 10, 100, 10_000])
def test_frames_are_parsed_across_any_chunk_boundaries(piece: int) -> None:
    connection = Connection()
    sent = b"".join(
        (
            frames.headers(1, PATH, more=True),
            frames.continuation(1, b"", last=True),
            frames.data(1, b"x" * 3000, end=True),
            frames.ping(),
            frames.call(3, PATH, b"y" * 500),
        )
    )
    for at in range(0, len(sent), piece):
        connection.send(sent[at : at + piece])
    assert connection.monitor.request_count == 2
    answers = response_headers(1, end=False) + response_headers(1) + response_headers(3)
    for at in range(0, len(answers), piece):
        connection.answer(answers[at : at + piece])
    assert not connection.monitor.is_busy


def encode_headers(*headers: tuple[str | bytes, str | bytes], huffman: bool) -> bytes:
    return bytes(Encoder().encode(headers, huffman=huffman))


@pytest.mark.parametrize("huffman", [True, False])
@pytest.mark.parametrize(
    ("header", "valid"),
    [
        ((":path", PATH), True),
        ((":path", "/ü/ß"), True),
        (("user-agent", "".join(map(chr, range(0x20, 0x7F)))), True),
        ((":path", b"/\xff\xfe/\x80"), False),
        ((":path", b"/\xc3"), False),
        (("x-anything", b"\xff"), False),
        ((b"x-\xff", b"value"), False),
        (("x-bin", b"/+8="), True),
    ],
)
def test_only_utf8_headers_are_valid(
    header: tuple[str | bytes, str | bytes], valid: bool, huffman: bool
) -> None:
    assert (
        has_utf8_headers(
            encode_headers((":method", "POST"), header, ("te", "trailers"), huffman=huffman)
        )
        is valid
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\x44\x84\xff\xff\xff\xff",
        b"\x40",
        b"\x40\x05abc",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x00\x7f",
    ],
)
def test_malformed_header_block_is_invalid(data: bytes) -> None:
    assert not has_utf8_headers(data)


@given(st.binary(max_size=60), st.booleans())
def test_header_is_valid_when_it_decodes_as_utf8(value: bytes, huffman: bool) -> None:
    try:
        value.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert has_utf8_headers(encode_headers((":path", value), huffman=huffman)) is valid


def test_headers_that_are_not_utf8_are_a_violation() -> None:
    connection = Connection()
    with pytest.raises(ProtocolViolation, match="not valid UTF-8"):
        connection.send(frames.block(1, encode_headers((":path", b"/\xff"), huffman=True)))


def test_header_size_is_limited() -> None:
    with pytest.raises(ProtocolViolation, match="too large"):
        Connection().send(frames.block(1, b"x" * 200_000))
    flood = frames.headers(1, PATH, more=True) + frames.continuation(1, b"") * 100
    with pytest.raises(ProtocolViolation, match="too large"):
        Connection().send(flood)
    huge = (1 << 20).to_bytes(3, "big") + b"\x01\x04" + (1).to_bytes(4, "big")
    with pytest.raises(ProtocolViolation, match="too large"):
        Connection().send(huge)


LARGE = 8 << 20


class Uploading(Connection):
    """A connection with memory for one large request."""

    def __init__(self) -> None:
        super().__init__()
        uploads = Uploads(ByteBudget("uploads", LARGE, LARGE))
        self.monitor = Http2Monitor(
            lambda: self.now, uploads=uploads.open("a", lambda: self.granted.append(True))
        )
        self.granted: list[bool] = []
        self.send(frames.opening())

    def begin(self, *streams: int) -> None:
        for stream in streams:
            self.send(frames.headers(stream, PATH))
            start = b"\0" + LARGE.to_bytes(4, "big") + b"x"
            self.send(frames.data(stream, start, end=False))

    def forward(self, data: bytes, *cuts: int) -> bytes:
        """Return what is forwarded of the server's bytes, which arrive in parts."""
        ends = [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        parts = [data[at:end] for at, end in zip([0, *ends], ends, strict=False)]
        return b"".join(bytes(self.monitor.feed_server(memoryview(part))) for part in parts)


@given(st.lists(st.integers(0, 200), max_size=4))
def test_window_updates_of_large_requests_are_withheld_until_there_is_memory(
    cuts: list[int],
) -> None:
    connection = Uploading()
    connection.begin(1, 3)
    others = response_headers(5), frames.data(7, b"x" * 50, end=False), frames.widened(0, 9)
    sent = b"".join(
        [others[0], frames.widened(1, LARGE), others[1], frames.widened(3, LARGE), others[2]]
    )
    passed = b"".join([others[0], frames.widened(1, LARGE), others[1], others[2]])
    assert connection.forward(sent, *cuts) == passed
    assert connection.forward(frames.widened(3, 100), *cuts) == b""
    connection.send(frames.reset(1))
    assert connection.granted == [True]
    assert connection.forward(b"") == frames.widened(3, LARGE + 100)


def test_granted_window_is_not_put_into_the_payload_of_another_frame() -> None:
    connection = Uploading()
    connection.begin(1, 3)
    connection.forward(frames.widened(1, LARGE) + frames.widened(3, LARGE))
    reply = frames.data(7, b"x" * 50, end=False)
    assert connection.forward(reply[:30]) == reply[:30]
    connection.send(frames.reset(1))
    assert connection.forward(b"") == b""
    assert connection.forward(reply[30:]) == reply[30:] + frames.widened(3, LARGE)


def test_request_that_waits_for_memory_does_not_time_out() -> None:
    connection = Uploading()
    connection.begin(1, 3)
    connection.forward(frames.widened(1, LARGE) + frames.widened(3, LARGE))
    connection.now = 29.0
    connection.send(frames.data(1, b"x", end=False))
    assert connection.monitor.waiting_since == 29.0
    connection.now = 50.0
    connection.send(frames.reset(1))
    connection.forward(b"")
    assert connection.monitor.waiting_since == 50.0


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_bytes_are_parsed_or_a_violation(pieces: Sequence[bytes]) -> None:
    connection = Connection()
    with contextlib.suppress(ProtocolViolation):
        for piece in pieces:
            connection.send(piece)
            connection.answer(piece)
