"""The client at the other end of a connection."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

OnClient = Callable[[str, bool], None]
"""Takes the address of a peer, and whether the peer has connected (true) or disconnected (false).
Must not block."""


class Peer(NamedTuple):
    address: str
    """The address in gRPC's notation, such as `ipv4:127.0.0.1:50000`."""
    is_local: bool = False
    """Whether the client is on this computer, even if it uses an external address."""
    is_encrypted: bool = False
    """Whether the client uses TLS."""
    certificate: str = ""
    """The digest of the name in the client's verified certificate; empty without a certificate."""
    introduced_as: str = ""
    """The identity of the client, according to a signaling server that the machine trusts."""
    introduction: Mapping[str, str] = MappingProxyType({})
    """Properties of the client that the signaling server reports, such as its role."""

    @classmethod
    def from_addresses(
        cls,
        client: tuple[str, int],
        server: tuple[str, int],
        *,
        is_encrypted: bool = False,
        certificate: str = "",
    ) -> Peer:
        host, port = client[0].partition("%")[0], client[1]  # drops an interface such as %eth0
        is_loopback = ipaddress.ip_address(host).is_loopback
        is_local = is_loopback or host == server[0].partition("%")[0]
        return cls(format_address(host, port), is_local, is_encrypted, certificate)

    @property
    def is_confidential(self) -> bool:
        """Whether the connection is safe from eavesdropping on the network."""
        return self.is_local or self.is_encrypted

    @property
    def host_and_port(self) -> tuple[str, int]:
        host, _, port = self.address.partition(":")[2].rpartition(":")
        return host.strip("[]"), int(port) if port.isdecimal() else 0


def format_address(host: str, port: int) -> str:
    """Return an address in gRPC's notation."""
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def host_of(peer: str) -> str:
    """Return a peer without its port: `ipv4:10.0.0.7`. A peer without a port is unchanged."""
    family, _, address = peer.partition(":")
    if family not in ("ipv4", "ipv6", "webrtc"):
        return peer
    return f"{family}:{address.rpartition(':')[0]}"
