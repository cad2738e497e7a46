"""Makes headers of the PROXY protocol, as proxies send them."""

from __future__ import annotations

import ipaddress
import struct

_START = b"\r\n\r\n\0\r\nQUIT\n"


def encode_v2(host: str, port: int, *, is_encrypted: bool = False, is_local: bool = False) -> bytes:
    """`is_local`: the proxy itself has connected, as for a health check."""
    address = ipaddress.ip_address(host)
    body = address.packed * 2 + struct.pack(">HH", port, 443)
    if is_encrypted:
        ssl = struct.pack(">BI", 0x01, 0)
        body += struct.pack(">BH", 0x20, len(ssl)) + ssl
    family = 0x11 if address.version == 4 else 0x21
    command = 0x20 if is_local else 0x21
    return _START + struct.pack(">BBH", command, family, len(body)) + body


def encode_v2_unnamed(family: int, body: bytes = b"") -> bytes:
    """Forward a client without its address: UNSPEC (0x00), or a Unix socket (0x31)."""
    return _START + struct.pack(">BBH", 0x21, family, len(body)) + body
