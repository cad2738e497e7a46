"""The names of the cloud and of its machines."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.cloud.names import host_label
from cogwork.cloud.storage.records import Row


@dataclass(frozen=True, slots=True)
class PublicName:
    """How machines and clients know the cloud."""

    domain: str
    """The names of machines end with it: `<part>.<location>.<domain>`."""
    address: str
    """Where they reach it: `HOST:PORT`."""
    is_encrypted: bool
    """Whether they reach it with TLS."""

    @property
    def url(self) -> str:
        return f"{'https' if self.is_encrypted else 'http'}://{self.address}"

    def full_name(self, part: Row) -> str:
        """Return the name by which clients reach a part, given with the location of its machine."""
        return f"{host_label(part['name'])}.{part['location_id']}.{self.domain}"


def location_of(host: str) -> str:
    """Return the location in a name of a machine: `press.LOCATION.…` or `press-LOCATION.local`."""
    labels = host.split(".")
    if labels[-1] == "local" and len(labels) == 2:
        return labels[0].rpartition("-")[2]
    return labels[1] if len(labels) > 2 else ""


def local_name(part: Row) -> str:
    """Return the name by which clients of the same network reach a part."""
    return f"{host_label(part['name'])}-{part['location_id']}.local"
