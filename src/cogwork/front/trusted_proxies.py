"""Proxies that are trusted to report the address of their clients.

A proxy reports it with a header of the PROXY protocol, or with the headers `Forwarded` or
`X-Forwarded-For` of each request. Such headers are ignored if they come from other peers.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cogwork.net.peer import Peer, format_address

_FORWARDED, _FORWARDED_FOR, _FORWARDED_PROTO = "forwarded", "x-forwarded-for", "x-forwarded-proto"
_NAMES: Final = frozenset((_FORWARDED, _FORWARDED_FOR, _FORWARDED_PROTO))
_MAX_HOPS: Final = 32
"""Maximum number of proxies that are read from the headers of a request."""
_MAX_HEADER_SIZE: Final = 4096
_PAIR: Final = re.compile(r'\s*(?P<name>[\w-]+)=(?:"(?P<quoted>[^"\\]*)"|(?P<value>[^\s";,]*))\s*')
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Hop(NamedTuple):
    address: tuple[str, int] | None
    """The address; None if the proxy does not report it."""
    is_encrypted: bool
    """Whether this hop has used TLS."""


class TrustedProxies:
    def __init__(self, networks: Iterable[str] = ()) -> None:
        """Trust the proxies in these networks. Raise ValueError if a network is invalid.

        Each is an address or a network, such as `10.0.0.0/8`.
        """
        self._networks: tuple[Network, ...] = ()
        self.replace(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, host: str) -> bool:
        if not self._networks:
            return False
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)

    def replace(self, networks: Iterable[str]) -> None:
        """Replace the trusted networks. Raise ValueError if a network is invalid."""
        self._networks = tuple(map(parse_network, networks))

    def find_client(self, peer: Peer, headers: Iterable[tuple[str, str]]) -> Peer:
        """Return the client that made a request, given the peer that sent it and the request's
        headers."""
        if not self._networks or peer.host_and_port[0] not in self:
            return peer
        hops = _read_hops(headers)
        if hops is None:
            return peer
        hop = self._find_client_hop(hops)
        # A client behind a proxy is not on this computer, even if the proxy is.
        if hop is None or hop.address is None:
            return peer._replace(is_local=False, certificate="")
        host, port = hop.address
        # Without a port, use the port of the proxy's connection to distinguish clients with the
        # same address.
        return Peer(
            format_address(host, port or peer.host_and_port[1]),
            is_encrypted=peer.is_confidential and hop.is_encrypted,
        )

    def _find_client_hop(self, hops: Sequence[_Hop]) -> _Hop | None:
        """Return the last hop that is not a trusted proxy, because a client can forge all hops
        before it.

        The hop counts as encrypted if it and all later hops are encrypted.
        """
        found, is_encrypted = None, True
        for hop in reversed(hops):
            is_encrypted = is_encrypted and hop.is_encrypted
            found = hop._replace(is_encrypted=is_encrypted)
            if hop.address is None or hop.address[0] not in self:
                break
        return found


def parse_network(text: str) -> Network:
    """Parse an address or a network. Raise ValueError if it is invalid."""
    return ipaddress.ip_network(text, strict=False)


def _read_hops(headers: Iterable[tuple[str, str]]) -> list[_Hop] | None:
    """Return the hops of a request, the client first; None if no header names them.

    A proxy that sets one kind of header may pass on the other kind from the client, who may have
    forged it. So if the two kinds disagree, return no hops.
    """
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        if name in _NAMES:
            lines.setdefault(name, []).append(value)
    if _FORWARDED not in lines and _FORWARDED_FOR not in lines:
        return None
    schemes = [
        each.strip().lower() for each in ",".join(lines.get(_FORWARDED_PROTO, ())).split(",")
    ]
    simple = [
        _Hop(_parse_address(each), schemes[-1] == "https")
        for each in _split(lines.get(_FORWARDED_FOR, ()))
    ]
    standard = [_parse_element(each) for each in _split(lines.get(_FORWARDED, ()))]
    if simple and standard and simple[-1].address != standard[-1].address:
        return []
    return standard or simple


def _split(lines: Sequence[str]) -> list[str]:
    joined = ",".join(lines)
    return joined[-_MAX_HEADER_SIZE:].split(",")[-_MAX_HOPS:] if joined else []


def _parse_element(text: str) -> _Hop:
    """Return the hop of an element of `Forwarded`: `for="[2001:db8::1]:80";proto=https`."""
    pairs = {}
    for part in text.split(";"):
        match = _PAIR.fullmatch(part)
        if match is not None:
            pairs[match["name"].lower()] = match["quoted"] or match["value"] or ""
    return _Hop(_parse_address(pairs.get("for", "")), pairs.get("proto", "").lower() == "https")


def _parse_address(text: str) -> tuple[str, int] | None:
    """Return an address with or without a port; None if it is something else."""
    text = text.strip()
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])  # drops an interface such as %eth0
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port) if _PORT.fullmatch(port) else 0
