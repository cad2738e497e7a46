"""Who calls the cloud."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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

    def __str__(self) -> str:
        return f'{self.type} "{self.id}"'
