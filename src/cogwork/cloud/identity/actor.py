"""Who calls the cloud."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from cogwork.auth.access_list import Principal, PrincipalKind


class ActorType(enum.StrEnum):
    """By what an actor proves who it is, as the public API names it."""

    API_KEY = "api-key"
    PART = "robot-secret"
    """A part of a machine, by its own secret."""
    LOCATION = "robot-location-secret"
    """A client of the machines of a location, by the secret of the location."""


@dataclass(frozen=True, slots=True)
class Actor:
    type: ActorType
    id: str
    """Of the key, the part or the location."""
    secret_id: str = field(default="", compare=False)
    """The secret with which a part or a location has logged in: it may have two."""
    epoch: int = field(default=0, compare=False)
    """Of the key, which is raised when it is replaced."""

    @property
    def principal(self) -> Principal | None:
        """Who it is in the access lists of machines; None if it has no access to them."""
        if self.type is ActorType.API_KEY:
            return Principal(PrincipalKind.KEY, self.id, self.epoch)
        if self.type is ActorType.LOCATION:
            return Principal(PrincipalKind.LOCATION, self.secret_id)
        return None

    def __str__(self) -> str:
        return f'{self.type} "{self.id}"'
