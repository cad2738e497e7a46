"""The keys of the cloud itself: what each is for, and when it is used.

The state of a key follows from its times alone. So nothing has to run at the moment of a switch,
and several processes with the same rows switch together.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND


class KeyPurpose(enum.StrEnum):
    TOKEN = "token"  # noqa: S105 - not a secret
    """Signs the tokens with which callers use the cloud (Ed25519)."""
    PART_TOKEN = "part-token"  # noqa: S105
    """Signs the tokens with which callers use machines, which verify them (RSA)."""
    AUTHORITY = "authority"
    """Signs the certificates of machines."""
    SEALING = "sealing"
    """Encrypts secrets that must stay readable (AES)."""


class KeyState(enum.StrEnum):
    NEXT = "next"
    """It is known to those who verify, and is not used yet."""
    ACTIVE = "active"
    RETIRED = "retired"
    """What was made with it is still accepted."""


@dataclass(frozen=True, slots=True)
class CloudKey:
    """A row of its table. Times are in microseconds since 1970."""

    id: str
    purpose: KeyPurpose
    public: str
    sealed: str
    """The private part, sealed with the root key."""
    created_at: int
    active_from: int
    ends_at: int | None = None
    """When it is deleted. None: not as long as it is used."""


class RotationSchedule(NamedTuple):
    lead: int
    """Microseconds from the creation of a key to its first use."""
    overlap: int | None
    """Microseconds for which its predecessor is accepted then. None: until nothing uses it."""


SCHEDULES: Final = {
    # The lead is the time in which every process of the cloud has read the key.
    KeyPurpose.TOKEN: RotationSchedule(60 * _SECOND, 400 * _DAY),
    # Machines get the keys with their access list; one that is off for a day misses nothing.
    KeyPurpose.PART_TOKEN: RotationSchedule(_DAY, _DAY),
    # Clients have a copy of the authority's certificate; that of a machine lasts 90 days.
    KeyPurpose.AUTHORITY: RotationSchedule(90 * _DAY, 91 * _DAY),
    KeyPurpose.SEALING: RotationSchedule(60 * _SECOND, None),
}


def find_active(keys: Iterable[CloudKey], purpose: KeyPurpose, now: int) -> CloudKey | None:
    """Return the key of a purpose that is in use."""
    begun = [key for key in keys if key.purpose is purpose and key.active_from <= now]
    return max(begun, key=lambda key: (key.active_from, key.id), default=None)


def state_of(key: CloudKey, keys: Iterable[CloudKey], now: int) -> KeyState:
    if key.active_from > now:
        return KeyState.NEXT
    return KeyState.ACTIVE if find_active(keys, key.purpose, now) == key else KeyState.RETIRED


def has_ended(key: CloudKey, now: int) -> bool:
    return key.ends_at is not None and key.ends_at <= now
