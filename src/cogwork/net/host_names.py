"""Checks of the Host header."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from cogwork.net.address import is_ip_address


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
    return name.removesuffix(".") in names or is_ip_address(name)
