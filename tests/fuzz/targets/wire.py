"""What clients send ahead of any message: frames of HTTP/2 and blocks of headers."""

from __future__ import annotations

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from tests import frames
from tests.fuzz.target import ContractViolation, Target

from cogwork.front.http2_frames import ProtocolViolation
from cogwork.front.http2_headers import has_utf8_headers
from cogwork.front.http2_monitor import Http2Monitor

_PATH = "/viam.robot.v1.RobotService/ResourceNames"


def target_http2(data: bytes) -> None:
    """Check that the monitor does not depend on how the bytes are split."""
    whole = _run_monitor([data])
    cut = data[0] % 17 + 1 if data else 1
    pieces = _run_monitor([data[at : at + cut] for at in range(0, len(data), cut)])
    if whole != pieces:
        raise ContractViolation(f"{whole} at once, {pieces} in pieces of {cut}")


def _run_monitor(pieces: list[bytes]) -> tuple[int, bool, bool] | str:
    monitor = Http2Monitor(lambda: 0.0)
    try:
        monitor.feed_client(memoryview(frames.PREFACE))
        for piece in pieces:
            if monitor.feed_client(memoryview(piece)) != len(piece):
                raise ContractViolation("something waits although nothing limits it")
        for piece in pieces:
            monitor.feed_server(memoryview(piece))
    except ProtocolViolation:
        return "refused"
    return monitor.request_count, monitor.is_busy, monitor.waiting_since is not None


def target_headers(data: bytes) -> None:
    """Check that accepted headers are text for a real decoder, too."""
    accepted = has_utf8_headers(data)
    decoder = Decoder()
    try:
        found = decoder.decode(data, raw=True)
    except (HPACKError, ValueError):
        return
    valid = all(_is_text(part) for name, value in found for part in (bytes(name), bytes(value)))
    if accepted and not valid:
        raise ContractViolation("a header that is not text passes")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _header_seeds() -> list[bytes]:
    headers = [
        (b":method", b"POST"),
        (b":path", _PATH.encode()),
        (b"x-bin", b"/+8="),
        (b"x-a", b"\xff\xfe"),
    ]
    return [bytes(Encoder().encode(headers, huffman=coded)) for coded in (True, False)]


def _frame_seeds() -> list[bytes]:
    return [
        frames.settings() + frames.call(1, _PATH, b"hello") + frames.ping(),
        frames.headers(1, _PATH, more=True) + frames.continuation(1, b"", last=True),
        frames.call(1, _PATH) + frames.reset(1) + frames.widened(0, 5) + frames.data(3, b"x"),
    ]


TARGETS = (
    Target(
        "wire.http2",
        target_http2,
        _frame_seeds,
        ("cogwork.front.http2_frames", "cogwork.front.http2_monitor"),
        (b"\x00\x00\x00\x01\x04", b"\x00\x00\x05\x00\x01", b"\x09", b"\x00\x00\x04\x03\x00"),
    ),
    Target(
        "wire.headers",
        target_headers,
        _header_seeds,
        ("cogwork.front.http2_headers",),
        (b"\x40", b"\x00", b"\x80", b"\x7f", b"\xff\xff\xff", b"\x04\x85"),
    ),
)
