"""The addresses to listen on: loopback only, unless the configuration sets others."""

from __future__ import annotations

from cogwork.config.schema.machine import MachineConfig
from cogwork.net.address import Address
from cogwork.serving.listen_addresses import ListenAddresses

DEFAULT_ADDRESS = "localhost:8080"


def resolve_listen_addresses(
    config: MachineConfig, port: int | None = None, *, requires_login: bool | None = None
) -> ListenAddresses:
    """Return the addresses to listen on.

    `port` replaces the configured port. `requires_login`: whether clients must log in; by default,
    this depends on the configuration only.
    """
    network, proxies = config.network, tuple(config.network.trusted_proxies)
    public = Address.parse(network.bind_address or DEFAULT_ADDRESS)
    if port is not None:
        public = public._replace(port=port)
    grpc = Address.parse(network.grpc_address) if network.grpc_address else None
    exposed = [address for address in (public, grpc) if address and not address.is_loopback]
    is_protected = config.auth.is_configured if requires_login is None else requires_login
    if not exposed or is_protected:
        return ListenAddresses(public, grpc, (), network.front, proxies)
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
            proxies,
        )
    return ListenAddresses(
        public,
        grpc,
        tuple(
            f"listening on {address} without login: anyone who reaches it can control this machine"
            for address in exposed
        ),
        network.front,
        proxies,
    )
