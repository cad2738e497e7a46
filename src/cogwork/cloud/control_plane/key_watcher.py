"""Loads the keys of the cloud again while it runs, because commands may change them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.identity.cloud_record import advance_checkpoint
from cogwork.cloud.keys.cloud_key import CloudKey, KeyPurpose, has_ended
from cogwork.cloud.keys.key_records import delete_ended_keys, list_cloud_keys
from cogwork.cloud.keys.resealing import reseal_batch
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.bus import describe_change, part_topic

INTERVAL: Final = 5.0
"""Seconds between two checks for changed keys: much less than from a key's creation to its first
use."""
_CHECKPOINT_INTERVAL: Final = 300.0
"""Seconds between two checkpoints. Checkpoints reveal whether the records are from an older
backup."""
_MACHINES_AT_ONCE: Final = 100
_PAUSE: Final = 0.5
"""Seconds between two groups of notified machines, so that they do not all fetch their access lists
at once."""

_log = logging.getLogger("cloud.keys")


class KeyWatcher:
    def __init__(self, context: CloudContext, directory: CloudDirectory) -> None:
        self._context = context
        self._directory = directory
        self._checkpoint_at = context.clock.monotonic() + _CHECKPOINT_INTERVAL
        self._has_new_authority = False
        """Whether the authorities have changed since the file of authorities was written."""

    async def refresh(self) -> None:
        """Load the keys from the records, and act on changes."""
        context = self._context
        rows = await context.records.read(list_cloud_keys)
        if any(has_ended(key, context.now()) for key in rows):
            ended = await context.records.write(lambda tx: delete_ended_keys(tx, context.now()))
            for key in ended:
                _log.info("deleted the expired %s key %s", key.purpose, key.id[:12])
            rows = await context.records.read(list_cloud_keys)
        former = context.keys.rows
        changed = context.keys.use(rows)
        if _is_token_key_stolen(former, rows, context.now()):
            context.actors.forget_all()
            context.calls.end_all()
        if changed:
            _log.info(
                "the cloud's keys for these purposes have changed: %s", ", ".join(sorted(changed))
            )
        # Notify machines first, because a stolen key must stop working even if the steps below
        # fail.
        if KeyPurpose.PART_TOKEN in changed:
            await self._tell_machines()
        self._has_new_authority |= KeyPurpose.AUTHORITY in changed
        if self._has_new_authority:
            bundle = context.keys.authority_bundle
            await asyncio.to_thread(self._directory.save_authorities, bundle)
            self._has_new_authority = False
        if await self._reseal(rows):
            context.keys.use(await context.records.read(list_cloud_keys))
        if context.clock.monotonic() >= self._checkpoint_at:
            self._checkpoint_at = context.clock.monotonic() + _CHECKPOINT_INTERVAL
            checkpoint = await context.records.write(advance_checkpoint)
            await asyncio.to_thread(self._directory.save_checkpoint, checkpoint)

    async def _reseal(self, rows: list[CloudKey]) -> bool:
        """Seal all secrets with the active key. Return whether former keys were deleted."""
        context, (active, _) = self._context, self._context.keys.sealing_key
        used = [
            key
            for key in rows
            if key.purpose is KeyPurpose.SEALING and key.active_from <= context.now()
        ]
        if len(used) < 2:
            return False
        while not await context.records.write(lambda tx: reseal_batch(tx, context.keyring, active)):
            pass
        _log.info("sealed all secrets with the key %s", active)
        return True

    async def _tell_machines(self) -> None:
        """Tell connected machines to fetch their access lists, which have the token keys."""
        parts = self._context.presence.list_connected()
        for start in range(0, len(parts), _MACHINES_AT_ONCE):
            for part in parts[start : start + _MACHINES_AT_ONCE]:
                self._context.bus.publish(part_topic(part), describe_change(()))
            await self._context.clock.sleep(_PAUSE)


def _is_token_key_stolen(former: Sequence[CloudKey], rows: Sequence[CloudKey], now: int) -> bool:
    """Return whether a token key was deleted before it expired."""
    left = {key.id for key in rows}
    return any(
        key.purpose is KeyPurpose.TOKEN and key.id not in left and not has_ended(key, now)
        for key in former
    )
