"""The cache of actors by their tokens."""

from __future__ import annotations

from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.core.clock import ManualClock

KEY = Actor(ActorType.API_KEY, "key")
OTHER = Actor(ActorType.PART, "part")


async def test_actor_is_known_for_a_moment() -> None:
    clock = ManualClock()
    cache = ActorCache(clock)
    cache.add(cache.begin("token"), KEY)
    assert cache.find("token") == KEY
    assert cache.find("other") is None
    await clock.advance(60)
    assert cache.find("token") is None


def test_forgotten_actor_is_looked_up_again() -> None:
    cache = ActorCache(ManualClock())
    cache.add(cache.begin("one"), KEY)
    cache.add(cache.begin("two"), KEY)
    cache.add(cache.begin("three"), OTHER)
    cache.forget({"key"})
    assert [cache.find(token) for token in ("one", "two", "three")] == [None, None, OTHER]


def test_lookup_that_began_before_a_removal_is_not_remembered() -> None:
    """It may have seen the credentials before they were removed."""
    cache = ActorCache(ManualClock())
    lookup = cache.begin("token")
    cache.forget({"key"})
    assert not cache.add(lookup, KEY)
    assert cache.find("token") is None


def test_number_of_tokens_is_limited() -> None:
    cache = ActorCache(ManualClock())
    for number in range(25_000):
        cache.add(cache.begin(str(number)), KEY)
    assert cache.find("0") is None
    assert cache.find("24999") == KEY
    assert len(cache._actors) <= 20_000
