"""Open the cloud that a directory holds."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator

from cogwork.auth.signing_key import load_signing_key
from cogwork.cloud.cloud_directory import CloudDirectory
from cogwork.cloud.context import CloudContext
from cogwork.cloud.control_plane import ControlPlane
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.cloud.identity.keyring import Keyring
from cogwork.cloud.identity.machine_tokens import MachineTokenIssuer
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.cloud.machine.part_watch import PartWatch
from cogwork.cloud.machine.presence import Presence, cancel_and_save
from cogwork.cloud.public_name import PublicName
from cogwork.cloud.signaling.relay_servers import NO_RELAYS, RelayServers
from cogwork.cloud.storage.folder_blobs import FolderBlobs
from cogwork.cloud.storage.local_bus import LocalBus
from cogwork.cloud.storage.sqlite_log_store import SqliteLogStore
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.core.atomic import make_directory
from cogwork.core.clock import Clock


@contextlib.asynccontextmanager
async def open_cloud(
    directory: CloudDirectory,
    name: PublicName,
    clock: Clock,
    relays: RelayServers = NO_RELAYS,
) -> AsyncIterator[ControlPlane]:
    """Run the block with the cloud, whose files are created where they do not exist."""
    make_directory(directory.path)
    key = load_signing_key(directory.signing_key)
    now = datetime.datetime.fromtimestamp(clock.time(), datetime.UTC)
    authority = directory.load_authority(now)
    machine_tokens = MachineTokenIssuer(directory.load_token_key(), name.domain)
    async with open_stores(directory) as (records, logs), contextlib.AsyncExitStack() as stack:
        blobs = FolderBlobs(directory.blobs)
        stack.push_async_callback(blobs.aclose)
        presence = Presence(clock)
        saving = asyncio.create_task(presence.save_periodically(records), name="presence")
        stack.push_async_callback(cancel_and_save, saving, presence, records)
        context = CloudContext(
            records,
            logs,
            LocalBus(),
            blobs,
            Keyring(key),
            authority,
            name,
            clock,
            presence,
            PartWatch(clock),
            machine_tokens,
            ActorCache(clock),
            OpenCalls(),
            relays,
        )
        yield ControlPlane(context, key)


@contextlib.asynccontextmanager
async def open_stores(
    directory: CloudDirectory,
) -> AsyncIterator[tuple[SqliteRecords, SqliteLogStore]]:
    async with contextlib.AsyncExitStack() as stack:
        records = SqliteRecords(directory.records)
        stack.push_async_callback(records.aclose)
        logs = SqliteLogStore(directory.logs)
        stack.push_async_callback(logs.aclose)
        yield records, logs
