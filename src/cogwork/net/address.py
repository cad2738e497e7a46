"""Network addresses as users write them."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

MAX_PORT = 65535
TLS_PREFIX = "https://"
_ADDRESS = re.compile(r"(?:http://)?(\[[0-9A-Fa-f:.%]+\]|[^\s/:\[\]]*)(?::([^:]*))?/?")


def parse_port(text: str, least: int = 1) -> int:
    """Parse a port. Raise ValueError with a sentence for the user."""
    port = int(text) if re.fullmatch(r"[0-9]{1,5}", text) else -1
    if not least <= port <= MAX_PORT:
        raise ValueError(f"{text} is not a port; ports range from {least} to {MAX_PORT}")
    return port


def parse_address(text: str, default_port: int) -> str:
    """Return `HOST:PORT` for an address with or without a host, a port and `http://`.

    A leading `https://` is kept. Raise ValueError with a sentence for the user.
    """
    if text.startswith(TLS_PREFIX):
        return TLS_PREFIX + parse_address(text.removeprefix(TLS_PREFIX), default_port)
    found = _ADDRESS.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f'"{text}" is not an address; write HOST:PORT, such as localhost:8080')
    host, port = found.groups()
    number = default_port if port is None else parse_port(port.removesuffix("/"))
    return f"{host or 'localhost'}:{number}"


class Address(NamedTuple):
    host: str
    """The interface to listen on; empty for all interfaces."""
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        host, _, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback_address(address: str) -> bool:
    """Return whether the host of `HOST:PORT`, with or without `https://`, is this computer."""
    return is_loopback(address.removeprefix(TLS_PREFIX).rpartition(":")[0])


def is_loopback(host: str) -> bool:
    """Return whether a listener on the host is reachable only from this computer."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_ip_address(host: str) -> bool:
    """Return whether the host is an IP address, and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
