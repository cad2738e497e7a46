"""Remembers for a moment whose token it was, because every call of a machine has one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from cogwork.cloud.identity.actor import Actor
from cogwork.core.clock import Clock

_LIFETIME: Final = 5.0
"""Seconds for which a removed credential may be known to another process of the cloud."""
_MAX_TOKENS: Final = 20_000


class Lookup(NamedTuple):
    """A token that is being looked up."""

    token: str
    generation: int


class ActorCache:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._actors: OrderedDict[str, tuple[Actor, float]] = OrderedDict()
        """With the time when the entry ends, by token, the oldest first."""
        self._generation = 0
        """Increased when credentials are removed."""

    def find(self, token: str) -> Actor | None:
        actor, until = self._actors.get(token, (None, 0.0))
        return actor if self._clock.monotonic() < until else None

    def begin(self, token: str) -> Lookup:
        """Call this before the credentials are looked up."""
        return Lookup(token, self._generation)

    def add(self, lookup: Lookup, actor: Actor) -> bool:
        """Remember whose token it is. Return False if credentials were removed meanwhile, which
        the lookup may not have seen."""
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
        """Forget the tokens of actors with these IDs."""
        self._generation += 1
        for token in [token for token, (actor, _) in self._actors.items() if actor.id in ids]:
            del self._actors[token]
