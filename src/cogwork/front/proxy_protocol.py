"""Parses the PROXY protocol, versions 1 and 2, with which a proxy reports its client's address.

Pure. https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

_TEXT_START: Final = b"PROXY "
_BINARY_START: Final = b"\r\n\r\n\0\r\nQUIT\n"
_BINARY: Final = struct.Struct(">12sBBH")
_MAX_TEXT_SIZE: Final = 107
"""Maximum bytes of a header of version 1."""
MAX_SIZE: Final = 4096
"""Maximum bytes of a header."""
_TEXT: Final = re.compile(
    rb"PROXY (?:UNKNOWN(?: [^\r\n]*)?"
    rb"|TCP[46] (?P<host>[0-9A-Fa-f.:]+) [0-9A-Fa-f.:]+ (?P<port>[0-9]{1,5}) [0-9]{1,5})\r\n"
)
_LOCAL, _FORWARDED = 0x20, 0x21
"""Commands of version 2. `_LOCAL`: the proxy itself has connected. `_FORWARDED`: it forwards a
client."""
_FAMILIES: Final = {0x11: struct.Struct(">4s4sHH"), 0x21: struct.Struct(">16s16sHH")}
"""The formats of the addresses of TCP over IPv4 and IPv6."""
_TLV: Final = struct.Struct(">BH")
_SSL: Final = 0x20
_CLIENT_USES_SSL: Final = 0x01
UNKNOWN_CLIENT: Final = ("0.0.0.0", 0)  # noqa: S104 - nothing listens there
"""The address of clients that a proxy does not name. The address of the proxy would be unsafe: such
a client could count as local, and forge another address with HTTP headers."""


class InvalidProxyHeader(ValueError):
    """The bytes begin like a header of the PROXY protocol, but are invalid."""


class ProxyHeader(NamedTuple):
    size: int
    """Bytes of the header. The bytes of the client follow it."""
    source: tuple[str, int] | None
    """The address of the client; None if the proxy itself has connected, such as for a health
    check."""
    is_encrypted: bool = False
    """Whether the client uses TLS."""


def may_be_header(data: bytes) -> bool:
    """Return whether the first bytes of a connection may be the beginning of a header."""
    return any(
        data.startswith(start) or start.startswith(data) for start in (_TEXT_START, _BINARY_START)
    )


def parse_header(data: bytes) -> ProxyHeader | None:
    """Return the header at the beginning; None while it is incomplete. Raise InvalidProxyHeader."""
    if data.startswith(_BINARY_START):
        return _parse_binary(data)
    if not data.startswith(_TEXT_START):
        return None
    match = _TEXT.match(data)
    if match is not None:
        if match["host"] is None:
            return ProxyHeader(match.end(), UNKNOWN_CLIENT)
        return ProxyHeader(match.end(), _check_address(match["host"].decode(), int(match["port"])))
    if b"\n" in data or len(data) >= _MAX_TEXT_SIZE:
        raise InvalidProxyHeader("the PROXY header of version 1 is malformed")
    return None


def _parse_binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _BINARY.size:
        return None
    _, command, family, length = _BINARY.unpack_from(data)
    size = _BINARY.size + length
    if command not in (_LOCAL, _FORWARDED) or size > MAX_SIZE:
        raise InvalidProxyHeader(
            "the PROXY header of version 2 is too large or has an unknown command"
        )
    if len(data) < size:
        return None
    if command == _LOCAL:
        return ProxyHeader(size, None)
    if family not in _FAMILIES:
        return ProxyHeader(size, UNKNOWN_CLIENT)
    layout = _FAMILIES[family]
    if length < layout.size:
        raise InvalidProxyHeader(
            "the PROXY header of version 2 is truncated: its address block is incomplete"
        )
    source, _, port, _ = layout.unpack_from(data, _BINARY.size)
    values = dict(_read_values(data[_BINARY.size + layout.size : size]))
    flags = values.get(_SSL, b"\0")[:1]
    return ProxyHeader(
        size,
        _check_address(str(ipaddress.ip_address(source)), port),
        bool(flags and flags[0] & _CLIENT_USES_SSL),
    )


def _read_values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the content of each additional value."""
    at = 0
    while at + _TLV.size <= len(data):
        kind, size = _TLV.unpack_from(data, at)
        at += _TLV.size
        yield kind, data[at : at + size]
        at += size


def _check_address(host: str, port: int) -> tuple[str, int]:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise InvalidProxyHeader("the PROXY header has an invalid client address") from None
    if port > 65535:
        raise InvalidProxyHeader("the PROXY header has an invalid client port")
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), port
