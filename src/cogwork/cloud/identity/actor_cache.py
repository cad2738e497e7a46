"""A short-lived cache of the actors of tokens, because every call has a token."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from cogwork.cloud.identity.actor import Actor
from cogwork.core.clock import Clock

_LIFETIME: Final = 5.0
"""Seconds to keep an actor. Other processes may accept a removed credential for this time."""
_MAX_TOKENS: Final = 20_000


class Lookup(NamedTuple):
    """The lookup of a token that is not in the cache."""

    token: str
    generation: int


class ActorCache:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._actors: OrderedDict[str, tuple[Actor, float]] = OrderedDict()
        """Actors by token, each with its expiry time, the oldest first."""
        self._generation = 0
        """Increased whenever credentials are removed."""

    def find(self, token: str) -> Actor | None:
        actor, until = self._actors.get(token, (None, 0.0))
        return actor if self._clock.monotonic() < until else None

    def begin(self, token: str) -> Lookup:
        """Begin a lookup. Call this before reading the credentials."""
        return Lookup(token, self._generation)

    def add(self, lookup: Lookup, actor: Actor) -> bool:
        """Add an actor to the cache.

        Return False if credentials were removed during the lookup, which may have read old data.
        """
        if lookup.generation != self._generation:
            return False
        self._actors[lookup.token] = actor, self._clock.monotonic() + _LIFETIME
        self._actors.move_to_end(lookup.token)
        if len(self._actors) > _MAX_TOKENS:
            self._actors.popitem(last=False)
        return True

    def forget_all(self) -> None:
        self._generation += 1
        self._actors.clear()

    def forget(self, ids: Collection[str]) -> None:
        """Remove the tokens of actors with these IDs."""
        self._generation += 1
        for token in [token for token, (actor, _) in self._actors.items() if actor.id in ids]:
            del self._actors[token]
