"""Open the cloud in a directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, CloudSettings, NoCloud
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.control_plane.health import CloudHealth
from cogwork.cloud.control_plane.monitored_stores import (
    MonitoredBlobs,
    MonitoredLogStore,
    MonitoredRecords,
)
from cogwork.cloud.control_plane.periodic_task import PeriodicTask, PeriodicTasks
from cogwork.cloud.control_plane.storage_check import INTERVAL as CHECK_INTERVAL
from cogwork.cloud.control_plane.storage_check import check_storage
from cogwork.cloud.control_plane.upgrade import upgrade_directory
from cogwork.cloud.fleet.log_losses import LogLosses
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.cloud.identity.cloud_record import advance_checkpoint, mark_restored, read_cloud
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.cloud.identity.part_watch import PartWatch
from cogwork.cloud.identity.presence import Presence
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.key_records import (
    delete_ended_keys,
    find_missing_purposes,
    list_cloud_keys,
)
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.keys.machine_tokens import MachineTokenIssuer
from cogwork.cloud.keys.sealer import Sealer
from cogwork.cloud.machine.log_intake import LogIntake
from cogwork.cloud.machine.log_quota import LogQuota, LogRates
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.signaling.relay_servers import NO_RELAYS, RelayServers
from cogwork.cloud.storage.ballast import Ballast
from cogwork.cloud.storage.disk_space import DiskSpace
from cogwork.cloud.storage.folder_blobs import FolderBlobs
from cogwork.cloud.storage.local_bus import LocalBus
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.sqlite_log_store import SqliteLogStore
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError

_SAVE_INTERVAL: Final = 30.0
"""Seconds between two saves of the counts of lost log lines and of the times when machines were
last seen."""

_log = logging.getLogger("cloud")


@contextlib.asynccontextmanager
async def open_cloud(
    directory: CloudDirectory,
    name: PublicName,
    clock: Clock,
    relays: RelayServers = NO_RELAYS,
    log_rates: LogRates | None = None,
) -> AsyncIterator[ControlPlane]:
    """Yield the cloud. No other process can open it at the same time.

    Raise NoCloud, NoRootKey or CannotUnseal if data is missing: a cloud without this data
    would refuse the credentials of its machines.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(directory.lock())
        if directory.needs_upgrade():
            await asyncio.to_thread(upgrade_directory, directory, clock)
        settings, root = directory.require_current(), directory.read_root_key()
        stores = await stack.enter_async_context(open_stores(directory))
        disk, ballast, health = stores.disk, stores.ballast, CloudHealth(clock)
        records = MonitoredRecords(stores.records, health)
        saved = directory.read_checkpoint()
        keys, checkpoint = await records.write(
            lambda tx: _check_in(tx, settings, root, clock, saved)
        )
        directory.save_checkpoint(checkpoint)
        directory.save_authorities(keys.authority_bundle)
        blobs = MonitoredBlobs(FolderBlobs(directory.blobs, disk), health)
        stack.push_async_callback(blobs.aclose)
        logs = MonitoredLogStore(stores.logs, health)
        presence, losses = Presence(clock), LogLosses(clock)

        async def save() -> None:
            await presence.save(records)
            await losses.save(records)

        async def check() -> None:
            await check_storage(disk, ballast, records, health)

        tasks = PeriodicTasks(clock, health)
        tasks.start(
            PeriodicTask("saving when machines were last seen", save, _SAVE_INTERVAL),
            PeriodicTask("checking the disk", check, CHECK_INTERVAL),
        )
        stack.push_async_callback(_save_last, save)
        stack.push_async_callback(tasks.aclose)
        context = CloudContext(
            records,
            logs,
            LocalBus(),
            blobs,
            keys,
            Keyring(keys),
            name,
            clock,
            presence,
            PartWatch(clock),
            MachineTokenIssuer(lambda: keys.part_token_key, name.domain),
            ActorCache(clock),
            OpenCalls(),
        )
        quota = LogQuota(clock.monotonic, log_rates)
        intake = LogIntake(context, disk, quota, losses)
        yield ControlPlane(context, health, intake, relays)


def _check_in(
    tx: Transaction, settings: CloudSettings, root: Sealer, clock: Clock, saved: int
) -> tuple[CloudKeys, int]:
    """Check that the records belong to this cloud. Return its keys and the next checkpoint.

    `saved` is the checkpoint in the directory. A lower checkpoint in the records shows that the
    records were restored from a backup.
    """
    now = int(clock.time() * 1e6)
    cloud = read_cloud(tx)
    if cloud is None:
        raise NoCloud(
            "records.db holds no cloud; restore it from a backup with: cogwork-cloud restore FILE"
        )
    if cloud.id != settings.cloud_id:
        raise NoCloud(
            f"records.db belongs to the cloud {cloud.id}, and cloud.json to {settings.cloud_id}; "
            "restore both from the same backup"
        )
    delete_ended_keys(tx, now)
    rows = list_cloud_keys(tx)
    if missing := find_missing_purposes(rows):
        raise NoCloud(
            f"records.db has no {' and no '.join(missing)} key; restore it from a backup with: "
            "cogwork-cloud restore FILE"
        )
    keys = CloudKeys(root, clock, rows)
    if cloud.checkpoint < saved:
        _log.warning(
            "records.db was restored from an older backup. For 24 hours, a machine whose login "
            "fails is asked to try again, because the backup may be older than its secret"
        )
        mark_restored(tx, now)
        tx.execute("UPDATE cloud SET checkpoint = ?", saved)
    return keys, advance_checkpoint(tx)


class Stores(NamedTuple):
    records: SqliteRecords
    logs: SqliteLogStore
    disk: DiskSpace
    ballast: Ballast


@contextlib.asynccontextmanager
async def open_stores(directory: CloudDirectory) -> AsyncIterator[Stores]:
    async with contextlib.AsyncExitStack() as stack:
        disk, ballast = DiskSpace(directory.path), Ballast(directory.path / "ballast")
        records = SqliteRecords(directory.records, ballast)
        stack.push_async_callback(records.aclose)
        logs = SqliteLogStore(directory.logs, disk)
        stack.push_async_callback(logs.aclose)
        yield Stores(records, logs, disk, ballast)


async def _save_last(save: Callable[[], Awaitable[None]]) -> None:
    try:
        await save()
    except CogworkError as error:
        _log.error(
            "cannot save the counts of lost log lines and the times when machines were last seen: "
            "%s",
            error,
        )
