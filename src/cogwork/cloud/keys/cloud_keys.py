"""The unsealed keys of the cloud in this process.

Keys are added and expire while the cloud runs, so every use asks for the active key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cogwork.auth.certificate_authority import Authority
from cogwork.auth.signing_key import SigningKey
from cogwork.cloud.keys.cloud_key import CloudKey, KeyPurpose, find_active
from cogwork.cloud.keys.key_material import (
    read_authority,
    read_token_key,
    unseal_private,
)
from cogwork.cloud.keys.machine_tokens import PartTokenKey
from cogwork.cloud.keys.sealer import CannotUnseal, Sealer
from cogwork.core.clock import Clock


class _UnsealedKeys(NamedTuple):
    """The keys of each purpose by ID. Replaced as a whole, so that threads see no mixture of old
    and new keys."""

    rows: tuple[CloudKey, ...]
    token: dict[str, SigningKey]
    part_token: dict[str, PartTokenKey]
    authority: dict[str, Authority]
    sealing: dict[str, Sealer]


class CloudKeys:
    def __init__(self, root: Sealer, clock: Clock, keys: Sequence[CloudKey]) -> None:
        """Unseal the keys. Raise CannotUnseal if a key is damaged, or sealed with another root
        key."""
        self._root = root
        self._clock = clock
        self._unsealed = _unseal(keys, root)
        self.derivation_key: Final = root.derive("secrets of parts")
        """The key for derived secrets. It is never rotated, so derived secrets stay the same."""

    def use(self, keys: Sequence[CloudKey]) -> set[KeyPurpose]:
        """Replace the keys. Return the purposes whose keys have changed.

        Raise CannotUnseal if a key cannot be unsealed; the former keys are then kept.
        """
        changed = {key.purpose for key in {*keys} ^ {*self._unsealed.rows}}
        if changed:
            self._unsealed = _unseal(keys, self._root)
        return changed

    @property
    def rows(self) -> tuple[CloudKey, ...]:
        return self._unsealed.rows

    @property
    def token_keys(self) -> Mapping[str, SigningKey]:
        """The keys that verify tokens, by ID."""
        return self._unsealed.token

    @property
    def token_key(self) -> SigningKey:
        found = self._unsealed
        return found.token[self._choose(found, KeyPurpose.TOKEN)]

    @property
    def part_token_key(self) -> PartTokenKey:
        found = self._unsealed
        return found.part_token[self._choose(found, KeyPurpose.PART_TOKEN)]

    @property
    def authority(self) -> Authority:
        found = self._unsealed
        return found.authority[self._choose(found, KeyPurpose.AUTHORITY)]

    @property
    def authority_bundle(self) -> bytes:
        """The PEM certificates of all authorities, including the next one, for clients."""
        return b"".join(each.pem.certificate for each in self._unsealed.authority.values())

    @property
    def sealing_key(self) -> tuple[str, Sealer]:
        """The ID and the sealer of the active sealing key."""
        found = self._unsealed
        key = self._choose(found, KeyPurpose.SEALING)
        return key, found.sealing[key]

    def find_sealing_key(self, key_id: str) -> Sealer | None:
        return self._unsealed.sealing.get(key_id)

    def _choose(self, found: _UnsealedKeys, purpose: KeyPurpose) -> str:
        """Return the ID of the active key."""
        key = find_active(found.rows, purpose, int(self._clock.time() * 1e6))
        if key is None:  # the clock is wrong: no key is active yet
            key = next(each for each in found.rows if each.purpose is purpose)
        return key.id


def _unseal(keys: Sequence[CloudKey], root: Sealer) -> _UnsealedKeys:
    found = _UnsealedKeys(tuple(keys), {}, {}, {}, {})
    for key in keys:
        private = unseal_private(key, root)
        try:
            match key.purpose:
                case KeyPurpose.TOKEN:
                    found.token[key.id] = read_token_key(private)
                case KeyPurpose.PART_TOKEN:
                    found.part_token[key.id] = PartTokenKey(private)
                case KeyPurpose.AUTHORITY:
                    found.authority[key.id] = read_authority(key.public, private)
                case KeyPurpose.SEALING:
                    found.sealing[key.id] = Sealer(private)
        except ValueError as error:
            raise CannotUnseal(
                f"the {key.purpose} key {key.id[:12]} cannot be used: {error}"
            ) from None
    return found
