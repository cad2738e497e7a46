"""The identity of a client that has logged in."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from cogwork.auth.access_list import Principal
from cogwork.auth.roles import Role


class CredentialType(enum.StrEnum):
    """The types of credentials, by their names in the public API."""

    API_KEY = "api-key"
    LOCATION_SECRET = "robot-location-secret"  # noqa: S105 - a name, not a secret
    EXTERNAL = "external"
    CERTIFICATE = "certificate"
    """A client certificate. The TLS handshake verifies it, so the client needs no login."""
    SIGNALING = "signaling"
    """A client that a trusted signaling server has authenticated."""


@dataclass(frozen=True, slots=True)
class Identity:
    entity: str
    """The ID of an API key, a name of the machine, the subject of a token, or the name in a
    certificate."""
    type: CredentialType
    role: Role
    fingerprint: str = ""
    """A digest of the secret, so that a token ends when its secret is replaced."""
    valid_until: float = math.inf
    """The expiry time of the token, in seconds since 1970."""
    principal: Principal | None = None
    """The client in the access list of the cloud; None for credentials of the machine's own
    configuration."""
    name: str = ""
    """The name of an API key in the configuration; empty if it has none."""

    @property
    def label(self) -> str:
        """The name for people, or the entity."""
        return self.name or self.entity

    def __str__(self) -> str:
        return f'{self.type} "{self.label}"'
