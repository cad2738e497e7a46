"""What clients and proxies send ahead of any message: frames of HTTP/2, headers, addresses."""

from __future__ import annotations

import ipaddress

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy
from tests.support.network import http2_frames as frames
from tests.support.network.proxy_header import encode_v2

from cogwork.front.http2_frames import ProtocolViolation
from cogwork.front.http2_headers import has_utf8_headers
from cogwork.front.http2_monitor import Http2Monitor
from cogwork.front.proxy_protocol import InvalidProxyHeader, may_be_header, parse_header
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.peer import Peer

_PROXIES = TrustedProxies(("127.0.0.1", "10.0.0.0/8"))
_PROXY = Peer("ipv4:127.0.0.1:4000", is_local=True)
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
        sent = b"".join(pieces)
        passed = b"".join(bytes(monitor.feed_client(memoryview(piece))) for piece in pieces)
        if not sent.startswith(passed) or monitor.held_size:
            raise ContractViolation("something waits or changes although nothing limits it")
        passed = b"".join(bytes(monitor.feed_server(memoryview(piece))) for piece in pieces)
        if not sent.startswith(passed):
            raise ContractViolation("the server's bytes were changed although nothing limits them")
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


def target_proxy(data: bytes) -> None:
    """Check that a header is not read before it is complete, nor differently afterwards."""
    with allow_errors(data, InvalidProxyHeader):
        header = parse_header(data)
        if header is None:
            return
        if not may_be_header(data) or not 0 < header.size <= len(data):
            raise ContractViolation(f"a header of {header.size} bytes")
        if parse_header(data[: header.size]) != header:
            raise ContractViolation("what follows a header changes it")
        if header.source is not None:
            Peer.from_addresses(header.source, ("127.0.0.1", 1))


def target_forwarded(data: bytes) -> None:
    """Check that the last hop decides, whatever is before it, and that it is an address."""
    text = decode_lossy(data)
    for name, last in (("forwarded", "for=192.0.2.7"), ("x-forwarded-for", "192.0.2.7")):
        for lines in ([f"{text},{last}"], [text, last]):
            found = _PROXIES.find_client(_PROXY, [(name, line) for line in lines])
            if found.address != "ipv4:192.0.2.7:4000":
                raise ContractViolation(f"{name} has made {found.address}")
        found = _PROXIES.find_client(_PROXY, [(name, text)])
        if found.is_local:
            raise ContractViolation("a client behind a proxy is on this computer")
        ipaddress.ip_address(found.host_and_port[0])


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
    Target(
        "wire.proxy",
        target_proxy,
        lambda: [
            encode_v2("192.0.2.7", 5000, is_encrypted=True),
            encode_v2("2001:db8::7", 5000),
            b"PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n",
            b"PROXY UNKNOWN\r\n",
        ],
        ("cogwork.front.proxy_protocol",),
        (b"\r\n", b"TCP6", b"\x21\x11", b"\x20\x00\x05", b"::ffff:1.2.3.4", b" 99999"),
    ),
    Target(
        "wire.forwarded",
        target_forwarded,
        lambda: [
            b'for="[2001:db8::7]:5000";proto=https;by=10.0.0.1, for=10.0.0.5',
            b"203.0.113.9, 192.0.2.7:5000, [2001:db8::7]:1",
        ],
        ("cogwork.front.trusted_proxies",),
        (b"for=", b"proto=https", b'"', b";", b",", b"[::1]", b"10.0.0.1", b"unknown", b"%eth0"),
    ),
)
