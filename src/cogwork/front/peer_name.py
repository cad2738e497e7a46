"""Names of relayed connections, which tell the server who the client behind each of them is.

The servers behind the relay see only Unix sockets. The relay binds its own end of each to a name
that contains the client's address, so the servers need no other message about it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import ipaddress
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

_LOCAL, _REMOTE = "l", "r"
"""Upper case if the connection is encrypted. One character, because paths of sockets are short."""
_SOCKET_NAME = re.compile(
    r"(?P<number>\d+)(?P<place>[lrLR])(?P<certificate>[\w-]*)@(?P<address>.+)"
)
_PACKED_IPV6 = re.compile(r"(?P<host>[0-9a-f]{32}):(?P<port>\d+)")
_DIGEST_LENGTH = 12


class Peer(NamedTuple):
    address: str
    """In gRPC's notation, such as `ipv4:127.0.0.1:50000`."""
    is_local: bool = False
    """Whether the client is on this computer, whichever of its addresses it uses."""
    is_encrypted: bool = False
    """Whether the client uses TLS."""
    certificate: str = ""
    """The digest of the name that the client's certificate proves; empty if it proves none."""
    introduced_as: str = ""
    """Who the client is, according to a signaling server that the machine trusts."""
    introduction: Mapping[str, str] = MappingProxyType({})
    """What the signaling server says about it, such as its role."""

    @classmethod
    def from_addresses(
        cls,
        client: tuple[str, int],
        server: tuple[str, int],
        *,
        is_encrypted: bool = False,
        certificate: str = "",
    ) -> Peer:
        host, port = client[0].partition("%")[0], client[1]  # without the interface
        is_loopback = ipaddress.ip_address(host).is_loopback
        is_local = is_loopback or host == server[0].partition("%")[0]
        return cls(format_address(host, port), is_local, is_encrypted, certificate)

    @property
    def is_confidential(self) -> bool:
        """Whether no one else on the network can read the connection."""
        return self.is_local or self.is_encrypted

    @property
    def host_and_port(self) -> tuple[str, int]:
        host, _, port = self.address.partition(":")[2].rpartition(":")
        return host.strip("[]"), int(port) if port.isdecimal() else 0


def format_address(host: str, port: int) -> str:
    """Return an address in gRPC's notation."""
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


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
    """Return the client, given the path of the relay's end, percent-encoded or not."""
    match = _SOCKET_NAME.fullmatch(unquote(path.rpartition("/")[2]))
    if match is None:
        return _parse_direct(unquote(path))
    place = match["place"]
    return Peer(
        _unpack(match["address"]), place.lower() == _LOCAL, place.isupper(), match["certificate"]
    )


def connection_number(path: str) -> int | None:
    """Return the number of a connection, given the path of the relay's end as above.

    None for a client that connected without the relay.
    """
    match = _SOCKET_NAME.fullmatch(unquote(path.rpartition("/")[2]))
    return int(match["number"]) if match is not None else None


def _pack(address: str) -> str:
    """Shorten an IPv6 address: written out, it would leave no room for a certificate."""
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
    """Return a client that connected without the relay, to an address for gRPC only."""
    peer = Peer(address)
    if address.startswith("unix:"):
        return peer._replace(is_local=True)
    try:
        return peer._replace(is_local=ipaddress.ip_address(peer.host_and_port[0]).is_loopback)
    except ValueError:
        return peer


def host_of(peer: str) -> str:
    """Return a peer without its port: `ipv4:10.0.0.7`. A peer without a port is unchanged."""
    family, _, address = peer.partition(":")
    if family not in ("ipv4", "ipv6", "webrtc"):
        return peer
    return f"{family}:{address.rpartition(':')[0]}"
