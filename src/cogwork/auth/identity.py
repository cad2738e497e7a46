"""The identity of a client that has logged in."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cogwork.auth.roles import Role


class CredentialType(enum.StrEnum):
    """The kinds of credentials, as the public API names them."""

    API_KEY = "api-key"
    LOCATION_SECRET = "robot-location-secret"  # noqa: S105 - a name, not a secret
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Identity:
    entity: str
    """Who it is: the ID of an API key, a name of the machine, or the subject of a token."""
    type: CredentialType
    role: Role
    fingerprint: str = ""
    """Identifies the secret that was used, so that a token ends when its secret is replaced."""

    def __str__(self) -> str:
        return f'{self.type} "{self.entity}"'
