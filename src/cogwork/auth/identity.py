"""The identity of a client that has logged in."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from cogwork.auth.access_list import Principal
from cogwork.auth.roles import Role


class CredentialType(enum.StrEnum):
    """The kinds of credentials, as the public API names them."""

    API_KEY = "api-key"
    LOCATION_SECRET = "robot-location-secret"  # noqa: S105 - a name, not a secret
    EXTERNAL = "external"
    CERTIFICATE = "certificate"
    """A client certificate. Clients do not log in with it; their connection proves it."""
    SIGNALING = "signaling"
    """Authenticated by a signaling server that the machine trusts."""


@dataclass(frozen=True, slots=True)
class Identity:
    entity: str
    """Who it is: the ID of an API key, a name of the machine, the subject of a token, or the name
    in a certificate."""
    type: CredentialType
    role: Role
    fingerprint: str = ""
    """Identifies the secret that was used, so that a token ends when its secret is replaced."""
    valid_until: float = math.inf
    """Seconds since 1970 when its token expires."""
    principal: Principal | None = None
    """Who it is in the access list of the cloud; None if the machine's own configuration has it."""

    def __str__(self) -> str:
        return f'{self.type} "{self.entity}"'
