"""The names under which clients reach this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from cogwork.config.schema import MachineConfig


def allowed_host_names(config: MachineConfig, host_name: str) -> frozenset[str]:
    """Return the names of this machine; `host_name` is the one that the operating system uses."""
    network, cloud = config.network, config.cloud
    short = host_name.partition(".")[0]
    names = [
        "localhost",
        host_name,
        short,
        f"{short}.local",
        network.bind_address.rpartition(":")[0],
        network.fqdn,
        *network.allowed_hosts,
        *((cloud.fqdn, cloud.local_fqdn) if cloud is not None else ()),
    ]
    return frozenset(name.lower() for name in names if name)


def machine_name(config: MachineConfig, host_name: str) -> str:
    """Return the name that people see: the first label of its address, or its host name."""
    cloud = config.cloud
    full = config.network.fqdn or (cloud.fqdn if cloud is not None else "") or host_name
    return full.partition(".")[0]


def is_allowed_host(host: str, names: Collection[str]) -> bool:
    """Return whether a Host header names this machine.

    Any IP address is allowed: DNS rebinding cannot make a browser send a different address than
    the one it connects to. The port is not compared because forwarding may change it.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if name is None or parts.netloc != host or "@" in host:
        return False
    return name.removesuffix(".") in names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
