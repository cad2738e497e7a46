"""The network interfaces of this computer, and sockets for multicast DNS on each of them."""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import NamedTuple

import psutil

PORT = 5353
_GROUP_V4 = "224.0.0.251"
_GROUP_V6 = "ff02::fb"
_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
"""Linux socket options. Setting them to 0 keeps a socket from receiving multicast packets that
arrive on other interfaces."""
_TTL = 255


class Interface(NamedTuple):
    name: str
    number: int
    """The index of the interface in the kernel."""
    addresses: tuple[str, ...]
    """IPv4 addresses, and global or link-local IPv6 addresses without their zone."""
    is_loopback: bool

    @property
    def ipv4(self) -> str | None:
        return next((each for each in self.addresses if ":" not in each), None)

    @property
    def has_ipv6(self) -> bool:
        return any(":" in each for each in self.addresses)


def list_interfaces() -> list[Interface]:
    """Return the interfaces that are up and have addresses."""
    states = psutil.net_if_stats()
    found = []
    for name, given in psutil.net_if_addrs().items():
        addresses = [
            each.address.partition("%")[0]
            for each in given
            if each.family in (socket.AF_INET, socket.AF_INET6)
        ]
        if not addresses or not (name in states and states[name].isup):
            continue
        try:
            index = socket.if_nametoindex(name)
        except OSError:
            continue  # the interface has just disappeared
        is_loopback = any(ipaddress.ip_address(each).is_loopback for each in addresses)
        found.append(Interface(name, index, tuple(addresses), is_loopback))
    return found


class Endpoint(NamedTuple):
    """A socket on one interface, and the multicast group to which it sends."""

    socket: socket.socket
    group: tuple[str, int] | tuple[str, int, int, int]
    interface: int
    """The index of the interface in the kernel."""


def open_endpoints(interface: Interface, port: int = PORT) -> list[Endpoint]:
    """Open the IPv4 and IPv6 sockets of an interface for multicast DNS.

    Use the default `port` to answer queries, and 0 (any free port) to send queries. Raise OSError
    if no socket can be opened.
    """
    found: list[Endpoint] = []
    errors: list[OSError] = []
    for open_one, is_wanted in (
        (_open_v4, interface.ipv4 is not None),
        (_open_v6, interface.has_ipv6 and not interface.is_loopback),
    ):
        if is_wanted:
            try:
                found.append(open_one(interface, port))
            except OSError as error:
                errors.append(error)
    if not found and errors:
        raise errors[0]
    return found


def _open_v4(interface: Interface, port: int) -> Endpoint:
    assert interface.ipv4 is not None
    opened = _open(socket.AF_INET)
    try:
        own = socket.inet_aton(interface.ipv4)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _TTL)
        if port:
            opened.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            membership = struct.pack("=4s4si", socket.inet_aton(_GROUP_V4), own, interface.number)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            opened.bind((_GROUP_V4, port))
        else:
            opened.bind((interface.ipv4, 0))
    except OSError:
        opened.close()
        raise
    return Endpoint(opened, (_GROUP_V4, PORT), interface.number)


def _open_v6(interface: Interface, port: int) -> Endpoint:
    opened = _open(socket.AF_INET6)
    try:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface.number)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _TTL)
        if port:
            opened.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
            membership = struct.pack(
                "=16sI", socket.inet_pton(socket.AF_INET6, _GROUP_V6), interface.number
            )
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
            # Bind to the group, as with IPv4, to receive no unicast packets, which may come from
            # other networks.
            opened.bind((_GROUP_V6, port, 0, interface.number))
        else:
            opened.bind(("::", port))
    except OSError:
        opened.close()
        raise
    return Endpoint(opened, (_GROUP_V6, PORT, 0, interface.number), interface.number)


def _open(family: socket.AddressFamily) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setblocking(False)
    # Share the port with other programs on this computer that answer queries.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return opened
