"""Names of relayed connections, which tell the server who the client behind each of them is.

The servers behind the relay see only Unix sockets. The relay binds its own end of each to a name
that contains the client's address, so the servers need no other message about it.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import NamedTuple
from urllib.parse import unquote

_LOCAL, _REMOTE = "l", "r"
"""Upper case if the connection is encrypted. One character, because paths of sockets are short."""


class Peer(NamedTuple):
    address: str
    """In gRPC's notation, such as `ipv4:127.0.0.1:50000`."""
    is_local: bool = False
    """Whether the client is on this computer, whichever of its addresses it uses."""
    is_encrypted: bool = False
    """Whether the client uses TLS."""

    @classmethod
    def from_addresses(
        cls, client: tuple[str, int], server: tuple[str, int], *, is_encrypted: bool = False
    ) -> Peer:
        host, port = client[0].partition("%")[0], client[1]  # without the interface
        is_loopback = ipaddress.ip_address(host).is_loopback
        is_local = is_loopback or host == server[0].partition("%")[0]
        return cls(format_address(host, port), is_local, is_encrypted)

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


def socket_name(number: int, peer: Peer) -> str:
    """Return a unique file name for the relay's end of a connection."""
    place = _LOCAL if peer.is_local else _REMOTE
    return f"{number}{place.upper() if peer.is_encrypted else place}@{peer.address}"


@functools.lru_cache(maxsize=1024)
def parse_socket_name(path: str) -> Peer:
    """Return the client, given the path of the relay's end, percent-encoded or not."""
    prefix, at, address = unquote(path.rpartition("/")[2]).partition("@")
    if not at:
        return _parse_direct(unquote(path))
    place = prefix[-1:]
    return Peer(address, place.lower() == _LOCAL, place.isupper())


def _parse_direct(address: str) -> Peer:
    """Return a client that connected without the relay, to an address for gRPC only."""
    peer = Peer(address)
    if address.startswith("unix:"):
        return peer._replace(is_local=True)
    try:
        return peer._replace(is_local=ipaddress.ip_address(peer.host_and_port[0]).is_loopback)
    except ValueError:
        return peer
