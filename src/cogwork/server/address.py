"""The addresses to listen on: loopback only, unless the configuration sets others."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from cogwork.config.schema import MachineConfig
from cogwork.core.address import is_loopback

DEFAULT_ADDRESS = "localhost:8080"


class Address(NamedTuple):
    host: str
    """The interface; empty for all of them."""
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


class ListenAddresses(NamedTuple):
    public: Address
    grpc: Address | None
    warnings: tuple[str, ...]
    front: Literal["process", "in_process"] = "process"


def resolve_listen_addresses(config: MachineConfig, port: int | None = None) -> ListenAddresses:
    """`port` replaces that of the configuration."""
    network = config.network
    public = Address.parse(network.bind_address or DEFAULT_ADDRESS)
    if port is not None:
        public = public._replace(port=port)
    grpc = Address.parse(network.grpc_address) if network.grpc_address else None
    exposed = [address for address in (public, grpc) if address and not address.is_loopback]
    if not exposed or config.auth.is_configured:
        return ListenAddresses(public, grpc, (), network.front)
    if not network.insecure_without_auth:
        here = Address("localhost", public.port)
        return ListenAddresses(
            here,
            Address("localhost", grpc.port) if grpc else None,
            (
                f"listening on {here} instead of {' and '.join(map(str, exposed))}: without login, "
                'anyone who reaches it could control this machine; configure "auth", or set '
                "network.insecure_without_auth",
            ),
            network.front,
        )
    return ListenAddresses(
        public,
        grpc,
        tuple(
            f"listening on {address} without login: anyone who reaches it can control this machine"
            for address in exposed
        ),
        network.front,
    )


def format_serving_line(
    addresses: list[tuple[str, int]], requested: Address, *, is_encrypted: bool = False
) -> str:
    """Return the line that supervisors wait for on standard output."""
    port = addresses[0][1]
    url = Address(requested.host or "localhost", port)
    alternative = Address(addresses[0][0], port)
    scheme = "https" if is_encrypted else "http"
    urls = {"url": f"{scheme}://{url}", "alt_url": f"{scheme}://{alternative}"}
    return f"serving\t{json.dumps(urls, separators=(',', ':'))}"
