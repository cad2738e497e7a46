"""Names of relayed connections, from which the server learns the client of each connection.

The servers behind the relay see only Unix sockets. The relay binds its end of each connection to a
name that contains the client's address, so no other message about the client is needed.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import ipaddress
import re
from urllib.parse import unquote

from cogwork.net.peer import Peer, format_address

_LOCAL, _REMOTE = "l", "r"
"""Marks for local and remote clients; upper case if the connection is encrypted. Each has one
character, because the paths of sockets must be short."""
_SOCKET_NAME = re.compile(
    r"(?P<number>\d+)(?P<place>[lrLR])(?P<certificate>[\w-]*)@(?P<address>.+)"
)
_PACKED_IPV6 = re.compile(r"(?P<host>[0-9a-f]{32}):(?P<port>\d+)")
_DIGEST_LENGTH = 12


def digest_of(name: str) -> str:
    """Return the digest of a name in a client certificate."""
    digest = hashlib.sha256(name.encode()).digest()
    return base64.urlsafe_b64encode(digest)[:_DIGEST_LENGTH].decode()


def socket_name(number: int, peer: Peer) -> str:
    """Return a unique file name for the relay's end of a connection."""
    place = _LOCAL if peer.is_local else _REMOTE
    place = place.upper() if peer.is_encrypted else place
    return f"{number}{place}{peer.certificate}@{_pack(peer.address)}"


@functools.lru_cache(maxsize=1024)
def parse_socket_name(path: str) -> Peer:
    """Return the client that is encoded in the path of the relay's socket. The path may be
    percent-encoded."""
    match = _SOCKET_NAME.fullmatch(unquote(path.rpartition("/")[2]))
    if match is None:
        return _parse_direct(unquote(path))
    place = match["place"]
    return Peer(
        _unpack(match["address"]), place.lower() == _LOCAL, place.isupper(), match["certificate"]
    )


def connection_number(path: str) -> int | None:
    """Return the number of a connection from the path of the relay's end.

    Return None for a client that connected without the relay.
    """
    match = _SOCKET_NAME.fullmatch(unquote(path.rpartition("/")[2]))
    return int(match["number"]) if match is not None else None


def _pack(address: str) -> str:
    """Shorten an IPv6 address, because its full form would leave no room for the digest of a
    certificate."""
    if not address.startswith("ipv6:"):
        return address
    host, _, port = address.removeprefix("ipv6:").rpartition(":")
    return f"{ipaddress.IPv6Address(host.strip('[]')).packed.hex()}:{port}"


def _unpack(address: str) -> str:
    match = _PACKED_IPV6.fullmatch(address)
    if match is None:
        return address
    host = ipaddress.IPv6Address(bytes.fromhex(match["host"]))
    return format_address(str(host), int(match["port"]))


def _parse_direct(address: str) -> Peer:
    """Return a client that connected without the relay, to `network.grpc_address`."""
    peer = Peer(address)
    if address.startswith("unix:"):
        return peer._replace(is_local=True)
    try:
        return peer._replace(is_local=ipaddress.ip_address(peer.host_and_port[0]).is_loopback)
    except ValueError:
        return peer
