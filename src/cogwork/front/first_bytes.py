"""Detects the protocol of a connection by its first bytes, without consuming them."""

from __future__ import annotations

import enum
import socket
from collections.abc import Callable

from cogwork.front.proxy_protocol import may_be_header, parse_header
from cogwork.front.tls_socket import wait_readable

MAX_HEAD_SIZE = 16 * 1024
"""Bytes after which an incomplete head is relayed, so that the server rejects it."""

_HTTP2_PREFIX = b"PRI"
"""The first bytes of an HTTP/2 connection. No HTTP/1.1 method begins with them."""
_TLS_PREFIX = b"\x16\x03"
"""The first bytes of a TLS connection: a handshake record, and the major version."""


class FirstProtocol(enum.Enum):
    HTTP1 = enum.auto()
    HTTP2 = enum.auto()
    TLS = enum.auto()


async def detect_protocol(connection: socket.socket) -> FirstProtocol | None:
    """Return the protocol of the client; None if it disconnected without sending anything."""
    prefix = await peek(connection, len(_HTTP2_PREFIX), _is_conclusive)
    if not prefix:
        return None
    if prefix.startswith(_TLS_PREFIX):
        return FirstProtocol.TLS
    return FirstProtocol.HTTP2 if is_http2(prefix) else FirstProtocol.HTTP1


async def peek(
    connection: socket.socket, max_size: int, is_enough: Callable[[bytes], bool]
) -> bytes:
    """Return the first bytes that arrive, without consuming them.

    Wait until `is_enough` returns true, until `max_size` bytes have arrived, or until the client
    sends no more.
    """
    seen = b""
    try:
        while True:
            # Peeked bytes stay in the socket, so wake up only when further bytes arrive.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(seen) + 1)
            await wait_readable(connection)
            try:
                peeked = connection.recv(max_size, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            if len(peeked) in (len(seen), max_size) or is_enough(peeked):
                return peeked
            seen = peeked
    finally:
        if connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def is_http2(first: bytes) -> bool:
    return first.startswith(_HTTP2_PREFIX)


def is_complete_proxy_header(data: bytes) -> bool:
    """Return whether the PROXY header is complete, or the bytes do not start with a PROXY
    header."""
    return not may_be_header(data) or parse_header(data) is not None


def is_complete_start(data: bytes) -> bool:
    """Return whether the bytes start with the HTTP/2 preface or contain a complete HTTP/1.1
    head."""
    return is_http2(data) or is_complete_head(data)


def is_complete_head(data: bytes) -> bool:
    return b"\r\n\r\n" in data or b"\n\n" in data


def _is_conclusive(prefix: bytes) -> bool:
    return prefix.startswith(_TLS_PREFIX) or not any(
        each.startswith(prefix) for each in (_HTTP2_PREFIX, _TLS_PREFIX)
    )
