"""The rows of the tables: settings and models of viam-server that are different here."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

ANY_ITEM = "*"
"""Stands for every item of a list in the path of a setting."""

KeyPath: TypeAlias = tuple[str, ...]
"""The keys that lead to a setting, in lower case, such as `("mods", "*", "fragment_id")`."""


class Treatment(enum.Enum):
    NO_EFFECT = "accepted, has no effect here"
    """What runs is the same with and without the setting."""
    NOT_TAKEN_OVER = "not taken over"
    """The machine runs without what the setting asks for."""
    REQUIRED = "not taken over, and required"
    """The resource does not run: without what the setting asks for, it could do damage."""
    RENAMED = "taken over under another name"


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting of viam-server that is different here."""

    path: str
    """The key, or the path of the key below its section or below `attributes`, such as
    `event/type`."""
    treatment: Treatment
    reason: str
    """Why, as the second half of a sentence."""
    advice: str = ""
    """What to do instead."""
    new_key: str = ""
    """The name of the setting here, if it is `RENAMED`."""

    @property
    def keys(self) -> KeyPath:
        return tuple(self.path.lower().split("/"))

    def describe(self, key: str, *, is_empty: bool = False) -> str:
        """Return the sentence about a key as it stands in the file."""
        if is_empty:
            return f'"{key}" has no effect here: it is empty'
        match self.treatment:
            case Treatment.RENAMED:
                return f'"{key}" is called "{self.new_key}" here'
            case Treatment.NO_EFFECT:
                return f'"{key}" has no effect here: {self.reason}'
            case _:
                return f'"{key}" is not taken over: {self.reason}'


@dataclass(frozen=True, slots=True)
class MissingModel:
    """One built-in model of viam-server that does not exist here."""

    kind: str
    """`component` or `service`."""
    subtype: str
    """The last part of the API, such as `movement_sensor`."""
    model: str
    reason: str
    advice: str
    is_idle: bool = False
    """Whether removing the resource changes nothing, because no other resource can use it."""
