"""Create a cloud: its directory, its keys, the first organization and the owner."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, CloudSettings, NoCloud
from cogwork.cloud.fleet.keys import add_key
from cogwork.cloud.fleet.organizations import add_organization
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.cloud_record import insert_cloud
from cogwork.cloud.identity.part_watch import PartWatch
from cogwork.cloud.identity.presence import Presence
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.key_records import create_cloud_keys, list_cloud_keys
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.operations.operation import Call
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.sqlite_records import write_records
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError


class AlreadyInitialized(CogworkError):
    """The directory already has a cloud."""

    status = "FAILED_PRECONDITION"


class NewCloud(NamedTuple):
    cloud_id: str
    authorities: bytes
    key_id: str
    """The ID of the first owner's key."""
    key: str


def create_cloud(
    directory: CloudDirectory, domain: str, organization: str, clock: Clock
) -> NewCloud:
    """Create the cloud. Raise AlreadyInitialized or NoCloud."""
    with directory.lock():
        _require_empty(directory)
        root = directory.create_root_key()
        # Use a temporary name until the file is complete: an interrupted run can then be repeated.
        unfinished = directory.path / "records.new.db"
        _remove(unfinished)
        unfinished.touch(0o600)

        def work(tx: Transaction) -> NewCloud:
            now = int(clock.time() * 1e6)
            cloud_id = insert_cloud(tx, now)
            create_cloud_keys(tx, root, now)
            keys = CloudKeys(root, clock, list_cloud_keys(tx))
            call = command_call(Keyring(keys), domain, clock)
            owned = add_organization(tx, call, organization, is_hosting=True)
            owner = (ResourceType.ORGANIZATION, owned), CloudRole.OWNER
            key_id, key = add_key(tx, call, owned, "first owner", [owner])
            return NewCloud(cloud_id, keys.authority_bundle, key_id, key)

        new = write_records(unfinished, work)
        unfinished.replace(directory.records)
        directory.save_authorities(new.authorities)
        directory.save_settings(CloudSettings(domain, new.cloud_id))
        return new


def command_call(keyring: Keyring, domain: str, clock: Clock) -> Call:
    """Return the call for a command, which runs operations directly on the database."""
    name = PublicName(domain, domain, is_encrypted=True)
    command = Actor(ActorType.API_KEY, "")
    now = int(clock.time() * 1e6)
    return Call(command, now, keyring, name, Presence(clock), PartWatch(clock))


def _require_empty(directory: CloudDirectory) -> None:
    if directory.settings.exists():
        raise AlreadyInitialized("this directory already has a cloud")
    if directory.records.exists():
        raise NoCloud(
            f"{directory.path} has records, but no cloud.json: the file was lost, or an earlier "
            "init was interrupted. Restore it from a backup, or delete the directory"
        )


def _remove(database: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
