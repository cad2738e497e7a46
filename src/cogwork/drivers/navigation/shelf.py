"""Things that are kept by their names, so many of them and no more."""

from __future__ import annotations

from typing import Generic, TypeVar

from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

T = TypeVar("T")

MOST = 1000
LONGEST_NAME = 200


class Taken(CogworkError):
    """A name that something else has."""

    status = "ALREADY_EXISTS"


class Full(CogworkError):
    """No room for another one."""

    status = "RESOURCE_EXHAUSTED"


class Shelf(Generic[T]):
    def __init__(self, kind: str) -> None:
        """`kind`: what errors call such a thing."""
        self._kind = kind
        self._things: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._things)

    def all(self) -> list[T]:
        """In the order in which they came."""
        return list(self._things.values())

    def get(self, name: str) -> T:
        try:
            return self._things[name]
        except KeyError:
            some = ", ".join(sorted(self._things)[:10])
            there = f"there are {some}" if some else "there is none yet"
            raise NotFound(f'there is no {self._kind} "{name}"; {there}') from None

    def add(self, name: str, thing: T) -> T:
        self.check_free(name)
        if len(self._things) >= MOST:
            raise Full(f"there are {MOST} {self._kind}s already: delete some first")
        self._things[name] = thing
        return thing

    def replace(self, name: str, new_name: str, thing: T) -> T:
        """In the same place."""
        self.get(name)
        if new_name != name:
            self.check_free(new_name)
        self._things = {
            (new_name if key == name else key): (thing if key == name else kept)
            for key, kept in self._things.items()
        }
        return thing

    def remove(self, name: str) -> None:
        self.get(name)
        del self._things[name]

    def check_free(self, name: str) -> None:
        if not 0 < len(name) <= LONGEST_NAME:
            raise InvalidRequest(f"the name of a {self._kind} has 1 to {LONGEST_NAME} characters")
        if name in self._things:
            raise Taken(f'there is a {self._kind} "{name}" already: update it, or choose a name')
