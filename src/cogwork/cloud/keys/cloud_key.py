"""The keys of the cloud itself: their purposes, and the schedule of their rotation.

The state of a key depends only on its times. So no task has to run when keys switch, and several
processes with the same rows switch at the same time.
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
    """Signs tokens for calls to the cloud (Ed25519)."""
    PART_TOKEN = "part-token"  # noqa: S105
    """Signs tokens for calls to machines, which verify them (RSA)."""
    AUTHORITY = "authority"
    """Signs the certificates of machines."""
    SEALING = "sealing"
    """Encrypts secrets that must stay readable (AES)."""


class KeyState(enum.StrEnum):
    NEXT = "next"
    """Published for verification, but not used yet."""
    ACTIVE = "active"
    RETIRED = "retired"
    """No longer used, but signatures and sealed secrets of the key are still valid."""


@dataclass(frozen=True, slots=True)
class CloudKey:
    """A key of the cloud. Times are in microseconds since 1970."""

    id: str
    purpose: KeyPurpose
    public: str
    sealed: str
    """The private part, sealed with the root key."""
    created_at: int
    active_from: int
    ends_at: int | None = None
    """The time when the key expires and is deleted; None if no time is set."""


class RotationSchedule(NamedTuple):
    lead: int
    """Microseconds from the creation of a key to its first use."""
    overlap: int | None
    """Microseconds for which a retired key stays valid; None to keep it until nothing uses it."""


SCHEDULES: Final = {
    # The lead time is long enough for every process of the cloud to read the new key.
    KeyPurpose.TOKEN: RotationSchedule(60 * _SECOND, 400 * _DAY),
    # Machines get the keys with their access lists, which may reach them up to a day late.
    KeyPurpose.PART_TOKEN: RotationSchedule(_DAY, _DAY),
    # Clients have 90 days to store the next authority. The retired one stays valid for longer than
    # the 90 days of a machine's certificate.
    KeyPurpose.AUTHORITY: RotationSchedule(90 * _DAY, 91 * _DAY),
    KeyPurpose.SEALING: RotationSchedule(60 * _SECOND, None),
}


def find_active(keys: Iterable[CloudKey], purpose: KeyPurpose, now: int) -> CloudKey | None:
    """Return the active key of a purpose."""
    begun = [key for key in keys if key.purpose is purpose and key.active_from <= now]
    return max(begun, key=lambda key: (key.active_from, key.id), default=None)


def state_of(key: CloudKey, keys: Iterable[CloudKey], now: int) -> KeyState:
    if key.active_from > now:
        return KeyState.NEXT
    return KeyState.ACTIVE if find_active(keys, key.purpose, now) == key else KeyState.RETIRED


def has_ended(key: CloudKey, now: int) -> bool:
    return key.ends_at is not None and key.ends_at <= now
