"""The section `cloud`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Duration, Section, fault, require_certificate_pair


class ApiKey(Section):
    """An API key and its ID."""

    id: Annotated[str, Field(min_length=1)]
    """The ID of the key."""
    key: Annotated[str, Field(min_length=1)]
    """The key itself."""


class LocationSecret(Section):
    """A secret that all machines of a location share."""

    id: str
    """The ID of the secret."""
    secret: str
    """The secret itself."""


class CloudConfig(Section):
    """The connection of the machine to the cloud. The cloud fills in the fields after
    `refresh_interval`."""

    id: Annotated[str, Field(min_length=1)]
    """The ID of this machine part in the cloud. Requires `api_key` or `secret`."""
    secret: str = ""
    """The secret used to log in to the cloud if there is no `api_key`."""
    api_key: ApiKey | None = None
    """The API key used to log in to the cloud."""
    app_address: str = ""
    """The URL of the cloud, such as `https://fleet.example.org:443`."""
    refresh_interval: Duration = 10.0
    """Interval between checks of the cloud for a new configuration."""
    location_secret: str = ""
    """The secret of the location, in older files."""
    location_secrets: list[LocationSecret] = []
    """The secrets of the location. Clients can log in with any of them."""
    location_id: str = ""
    """The ID of the location."""
    primary_org_id: str = ""
    """The ID of the organization that owns the machine."""
    machine_id: str = ""
    """The ID of the machine that this part belongs to."""
    managed_by: str = ""
    """The manager of the machine, such as the address of the cloud."""
    fqdn: str = ""
    """The fully qualified domain name of the machine."""
    local_fqdn: str = ""
    """The domain name of the machine in its local network."""
    signaling_address: str = ""
    """The address of the WebRTC signaling server."""
    signaling_insecure: bool = False
    """Whether to connect to the signaling server without TLS."""
    tls_certificate: str = ""
    """The TLS certificate of the server, as PEM text. Requires `tls_private_key`."""
    tls_private_key: str = ""
    """The private key of `tls_certificate`, as PEM text."""

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        if not self.secret and self.api_key is None:
            raise fault(codes.INCOMPLETE_PAIR, '"id" requires "api_key" or "secret"')
        require_certificate_pair(
            {"tls_certificate": self.tls_certificate, "tls_private_key": self.tls_private_key}
        )
        return self
