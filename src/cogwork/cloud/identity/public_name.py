"""The names of the cloud and of its machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

_LOCAL_SUFFIX: Final = ".local"
_BY_ID: Final = "part"
"""Replaces the location in `<part ID>.part.<domain>`, a name that no rename changes."""


class LabeledPart(Protocol):
    """The components of a part's host name. The label may be an alias."""

    @property
    def location_id(self) -> str: ...

    @property
    def label(self) -> str: ...


class HostName(NamedTuple):
    location: str
    label: str

    @property
    def part_id(self) -> str | None:
        """The ID of the part, if the name contains it; else None."""
        return self.label if self.location == _BY_ID else None


@dataclass(frozen=True, slots=True)
class PublicName:
    """The public name of the cloud, and the names of its machines."""

    domain: str
    """The domain of the names of machines: `<part>.<location>.<domain>`."""
    address: str
    """The public address of the cloud: `HOST:PORT`."""
    is_encrypted: bool
    """Whether the address uses TLS."""

    @property
    def url(self) -> str:
        return f"{'https' if self.is_encrypted else 'http'}://{self.address}"

    def full_name(self, part: LabeledPart) -> str:
        """Return the host name of a part for clients."""
        return f"{part.label}.{part.location_id}.{self.domain}"

    def permanent_name(self, part_id: str) -> str:
        return f"{part_id}.{_BY_ID}.{self.domain}"

    def parse_host(self, host: str) -> HostName | None:
        """Parse the host name of a machine. Return None for a name of another domain."""
        if host.endswith(suffix := f".{self.domain}"):
            label, _, location = host.removesuffix(suffix).partition(".")
            if location:
                return HostName(location, label)
        if host.endswith(_LOCAL_SUFFIX):
            label, _, location = host.removesuffix(_LOCAL_SUFFIX).rpartition("-")
            return HostName(location, label)
        return None


def location_of(host: str) -> str:
    """Return the location in a name of a machine: `press.LOCATION.…` or `press-LOCATION.local`."""
    labels = host.split(".")
    if labels[-1] == "local" and len(labels) == 2:
        return labels[0].rpartition("-")[2]
    return labels[1] if len(labels) > 2 else ""


def local_name(part: LabeledPart) -> str:
    """Return the host name of a part for clients in the same network."""
    return f"{part.label}-{part.location_id}{_LOCAL_SUFFIX}"
