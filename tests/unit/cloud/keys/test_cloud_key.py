"""When a key of the cloud is used, and for how long what it made is accepted."""

from __future__ import annotations

from cogwork.cloud.keys.cloud_key import (
    CloudKey,
    KeyPurpose,
    KeyState,
    find_active,
    has_ended,
    state_of,
)


def key(name: str, active_from: int, purpose: KeyPurpose = KeyPurpose.TOKEN) -> CloudKey:
    return CloudKey(name, purpose, "", "", 0, active_from, ends_at=50)


KEYS = [key("a", 10), key("b", 20), key("c", 30), key("x", 25, KeyPurpose.SEALING)]


def test_state_follows_from_the_times() -> None:
    states = {now: [state_of(each, KEYS, now) for each in KEYS] for now in (9, 10, 29, 30)}
    new, used, old = KeyState.NEXT, KeyState.ACTIVE, KeyState.RETIRED
    assert states == {
        9: [new, new, new, new],
        10: [used, new, new, new],
        29: [old, used, new, used],
        30: [old, old, used, used],
    }


def test_at_most_one_key_is_active() -> None:
    assert find_active(KEYS, KeyPurpose.TOKEN, 9) is None
    assert find_active([], KeyPurpose.TOKEN, 9) is None
    same = [key("a", 10), key("b", 10)]
    assert [state_of(each, same, 10) for each in same].count(KeyState.ACTIVE) == 1


def test_key_ends_at_its_time() -> None:
    assert [has_ended(KEYS[0], now) for now in (49, 50)] == [False, True]
