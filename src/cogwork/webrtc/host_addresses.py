"""The addresses at which peers can reach this computer."""

from __future__ import annotations

import ifaddr

_LOOPBACK = "127.0.0.1"


def host_addresses(use_ipv4: bool = True, use_ipv6: bool = False) -> list[str]:
    """Return the IPv4 addresses of all interfaces, including loopback.

    This replaces a function of aioice that omits loopback, so the arguments are the same. IPv6
    addresses are omitted, because clients of this API use IPv4.
    """
    del use_ipv4, use_ipv6
    found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    addresses = [each for each in found if isinstance(each, str)]
    return [*(each for each in addresses if each != _LOOPBACK), _LOOPBACK]
