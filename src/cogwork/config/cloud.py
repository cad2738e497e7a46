"""The section `cloud`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Duration, Section, fault


class ApiKey(Section):
    """A key, and the id that it is known by."""

    id: Annotated[str, Field(min_length=1)]
    """Its id."""
    key: Annotated[str, Field(min_length=1)]
    """The key itself."""


class LocationSecret(Section):
    """A secret that all machines of a location share."""

    id: str
    """Its id."""
    secret: str
    """The secret itself."""


class CloudConfig(Section):
    """How the machine finds its fleet. The second half is filled by the cloud."""

    id: Annotated[str, Field(min_length=1)]
    """Which part of the fleet this computer is. An `api_key` or a `secret` goes with it."""
    secret: str = ""
    """What it logs in to the cloud with, if it has no `api_key`."""
    api_key: ApiKey | None = None
    """What it logs in to the cloud with."""
    app_address: str = ""
    """Where the cloud is, such as `https://fleet.example.org:443`."""
    refresh_interval: Duration = 10.0
    """How often to ask the cloud for another configuration."""
    location_secret: str = ""
    """The secret of its location, in older files."""
    location_secrets: list[LocationSecret] = []
    """The secrets of its location. Clients log in with any of them."""
    location_id: str = ""
    """Which location it is at."""
    primary_org_id: str = ""
    """Which organization it belongs to."""
    machine_id: str = ""
    """Which machine it is a part of."""
    managed_by: str = ""
    """Who looks after it, such as the address of the cloud."""
    fqdn: str = ""
    """Its name everywhere."""
    local_fqdn: str = ""
    """Its name in its own network."""
    signaling_address: str = ""
    """Where clients meet it to agree on a WebRTC connection."""
    signaling_insecure: bool = False
    """Whether they meet there without TLS."""
    tls_certificate: str = ""
    """The certificate to serve with, as PEM text. It goes with `tls_private_key`."""
    tls_private_key: str = ""
    """The private key of `tls_certificate`, as PEM text."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if not self.secret and self.api_key is None:
            raise fault(codes.HALF_SET, 'neither "api_key" nor "secret" is set beside "id"')
        if bool(self.tls_certificate) != bool(self.tls_private_key):
            missing = "tls_private_key" if self.tls_certificate else "tls_certificate"
            raise fault(codes.HALF_SET, f'"{missing}" is missing: certificate and key go together')
        return self
