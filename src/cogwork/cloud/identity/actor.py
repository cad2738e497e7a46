"""The identity of a caller of the cloud."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from cogwork.auth.access_list import Principal, PrincipalKind


class ActorType(enum.StrEnum):
    """The types of credentials of actors, by their names in the public API."""

    API_KEY = "api-key"
    PART = "robot-secret"
    """A part of a machine, which logs in with the secret of the part."""
    LOCATION = "robot-location-secret"
    """A client of the machines in a location, with the secret of the location."""


@dataclass(frozen=True, slots=True)
class Actor:
    type: ActorType
    id: str
    """The ID of the key, the part or the location."""
    secret_id: str = field(default="", compare=False)
    """The ID of the secret with which a part or a location has logged in. Each may have two
    secrets."""
    epoch: int = field(default=0, compare=False)
    """The epoch of the key, which increases when the key is replaced."""

    @property
    def principal(self) -> Principal | None:
        """The actor as an entry of access lists; None if the actor cannot be on them."""
        if self.type is ActorType.API_KEY:
            return Principal(PrincipalKind.KEY, self.id, self.epoch)
        if self.type is ActorType.LOCATION:
            return Principal(PrincipalKind.LOCATION, self.secret_id)
        return None

    def __str__(self) -> str:
        return f'{self.type} "{self.id}"'
