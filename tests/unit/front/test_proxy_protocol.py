from __future__ import annotations

import socket
import struct

import pytest
from tests.support.network.proxy_header import encode_v2, encode_v2_unnamed

from cogwork.front.proxy_protocol import (
    UNKNOWN_CLIENT,
    InvalidProxyHeader,
    ProxyHeader,
    may_be_header,
    parse_header,
)

V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n"
V1_IPV6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 50000 443\r\n"
CLIENT, CLIENT_IPV6 = ("192.0.2.7", 50000), ("2001:db8::7", 50000)


@pytest.mark.parametrize(
    ("header", "source", "is_encrypted"),
    [
        (V1, CLIENT, False),
        (V1_IPV6, CLIENT_IPV6, False),
        (b"PROXY UNKNOWN\r\n", UNKNOWN_CLIENT, False),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", UNKNOWN_CLIENT, False),
        (encode_v2_unnamed(0x00), UNKNOWN_CLIENT, False),
        (encode_v2_unnamed(0x31, bytes(216)), UNKNOWN_CLIENT, False),
        (encode_v2(*CLIENT), CLIENT, False),
        (encode_v2(*CLIENT, is_encrypted=True), CLIENT, True),
        (encode_v2(*CLIENT_IPV6, is_encrypted=True), CLIENT_IPV6, True),
        (encode_v2("::ffff:192.0.2.7", 50000), CLIENT, False),
        (encode_v2(*CLIENT, is_local=True), None, False),
    ],
)
def test_headers_are_read_as_soon_as_they_are_complete(
    header: bytes, source: tuple[str, int] | None, is_encrypted: bool
) -> None:
    for size in range(len(header)):
        assert may_be_header(header[:size])
        assert parse_header(header[:size]) is None
    expected = ProxyHeader(len(header), source, is_encrypted)
    assert parse_header(header + b"GET / HTTP/1.1\r\n") == expected


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1", b"PRI * HTTP/2.0", b"POST", b"\x16\x03\x01"])
def test_other_protocols_are_recognized(data: bytes) -> None:
    assert not may_be_header(data)
    assert parse_header(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY TCP4 192.0.2.7 198.51.100.1 50000\r\n",
        b"PROXY TCP4 robot.example 198.51.100.1 50000 443\r\n",
        b"PROXY TCP4 192.0.2.700 198.51.100.1 50000 443\r\n",
        b"PROXY TCP4 192.0.2.7 198.51.100.1 99999 443\r\n",
        b"PROXY " + b"x" * 107,
        encode_v2(*CLIENT)[:12] + b"\x11\x11\x00\x0c" + bytes(12),  # version 1 in binary
        encode_v2(*CLIENT)[:12] + struct.pack(">BBH", 0x21, 0x11, 60_000),
        encode_v2(*CLIENT)[:12] + struct.pack(">BBH", 0x21, 0x11, 4) + socket.inet_aton("1.2.3.4"),
    ],
)
def test_malformed_headers_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidProxyHeader):
        parse_header(data)
