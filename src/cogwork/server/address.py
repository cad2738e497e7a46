"""Where to listen: only on this computer, unless the configuration says otherwise."""

from __future__ import annotations

import ipaddress
import json
from typing import NamedTuple

from cogwork.config.network import AuthConfig
from cogwork.config.schema import MachineConfig

DEFAULT = "localhost:8080"


class Address(NamedTuple):
    host: str
    """Empty for every interface."""
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        host, _, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listen(NamedTuple):
    public: Address
    grpc: Address | None
    warnings: tuple[str, ...]


def listen_on(config: MachineConfig) -> Listen:
    network = config.network
    public = Address.parse(network.bind_address or DEFAULT)
    grpc = Address.parse(network.grpc_address) if network.grpc_address else None
    asked = [address for address in (public, grpc) if address and not address.is_loopback]
    if asked and _asks_for_a_lock(config):
        # Whoever does must not get an open door.
        here = Address("localhost", public.port)
        return Listen(
            here,
            Address("localhost", grpc.port) if grpc else None,
            (
                f"listening on {here} only: login and TLS are configured, and are not part of "
                "this release yet",
            ),
        )
    return Listen(
        public,
        grpc,
        tuple(
            f"listening on {address} without login: whoever reaches it can use this machine"
            for address in asked
        ),
    )


def _asks_for_a_lock(config: MachineConfig) -> bool:
    """Whether not everybody should be let in. A cloud brings logins and a certificate."""
    return bool(config.auth != AuthConfig() or config.network.tls_cert_file or config.cloud)


def serving_line(addresses: list[tuple[str, int]], asked: Address) -> str:
    """What supervisors wait for on standard output."""
    port = addresses[0][1]
    url = Address(asked.host or "localhost", port)
    alternative = Address(addresses[0][0], port)
    urls = {"url": f"http://{url}", "alt_url": f"http://{alternative}"}
    return f"serving\t{json.dumps(urls, separators=(',', ':'))}"
