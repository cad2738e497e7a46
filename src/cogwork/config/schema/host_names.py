"""The names under which clients reach this machine."""

from __future__ import annotations

from cogwork.config.schema.machine import MachineConfig


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
