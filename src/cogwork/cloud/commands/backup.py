"""Backup and restore of a cloud's records, and repair of a cloud whose root key is lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, NoCloud
from cogwork.cloud.identity.cloud_record import mark_restored, read_cloud
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.key_records import (
    create_cloud_keys,
    delete_cloud_keys,
    find_missing_purposes,
    list_cloud_keys,
)
from cogwork.cloud.keys.resealing import SEALED_TABLES
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.sqlite_records import copy_records, write_records
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import write_reason


class CannotBackUp(CogworkError):
    """The backup cannot be written."""


def back_up(directory: CloudDirectory, target: Path) -> None:
    """Copy the records to a file. The cloud may be running. Raise CannotBackUp."""
    directory.require_current()
    if target.exists():
        raise CannotBackUp(f"{target} exists; name another file")
    with _unfinished(target) as unfinished:
        try:
            copy_records(directory.records, unfinished)
        except OSError as error:
            raise CannotBackUp(f"cannot write {target}: {write_reason(error)}") from None


def restore(directory: CloudDirectory, source: Path | None, clock: Clock) -> Path | None:
    """Replace the records by a backup. Return the file with the former records.

    If `source` is None, the records were already restored by other means: only check them, and
    mark them as restored. Raise NoCloud if the records belong to another cloud.
    """
    with directory.lock():
        now = int(clock.time() * 1e6)
        if source is None:
            directory.require_current()
            write_records(directory.records, lambda tx: _accept(tx, directory, clock, now))
            return None
        if not source.is_file() or not source.stat().st_size:
            raise NoCloud(
                f"{source} is missing or empty; give a file that this command has written: "
                "cogwork-cloud backup"
            )
        with _unfinished(directory.records) as unfinished:
            copy_records(source, unfinished)
            write_records(unfinished, lambda tx: _accept(tx, directory, clock, now))
            return _put_aside(directory.records, now)


def renew_root_key(directory: CloudDirectory, clock: Clock) -> None:
    """Create a new root key and new keys, because the root key is lost.

    Logins still work. Tokens become invalid, and stored secrets can no longer be shown.
    """
    with directory.lock():
        directory.require_current()
        now = int(clock.time() * 1e6)
        unfinished = CloudDirectory(directory.path / "new-root-key", directory.given_root_key)
        root = unfinished.create_root_key()

        def work(tx: Transaction) -> bytes:
            delete_cloud_keys(tx, list_cloud_keys(tx))
            create_cloud_keys(tx, root, now)
            for table in SEALED_TABLES:
                tx.execute(f"UPDATE {table} SET sealed = ''")  # noqa: S608 - a constant
            return CloudKeys(root, clock, list_cloud_keys(tx)).authority_bundle

        authorities = write_records(directory.records, work)
        if not directory.given_root_key:
            unfinished.root_key.replace(directory.root_key)
        directory.save_authorities(authorities)
        with contextlib.suppress(OSError):
            unfinished.path.rmdir()


def _accept(tx: Transaction, directory: CloudDirectory, clock: Clock, now: int) -> None:
    """Check that records belong to this cloud and its root key, and mark them as restored."""
    cloud, expected = read_cloud(tx), directory.read_cloud_id()
    if cloud is None or cloud.id != expected:
        found = f"belong to the cloud {cloud.id}" if cloud is not None else "belong to no cloud"
        raise NoCloud(
            f"the records {found}, but this directory needs records of the cloud {expected}"
        )
    keys = list_cloud_keys(tx)
    if missing := find_missing_purposes(keys):
        raise NoCloud(f"the records have no {' and no '.join(missing)} key; use another backup")
    CloudKeys(directory.read_root_key(), clock, keys)
    mark_restored(tx, now)
    # Raise the checkpoint, so that the next start does not detect the same restore again.
    tx.execute(
        "UPDATE cloud SET checkpoint = ? WHERE checkpoint < ?",
        *(directory.read_checkpoint(), directory.read_checkpoint()),
    )


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Yield a temporary file. Move it to `target` when the block ends without an error."""
    found = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        found.touch(0o600)
        yield found
        with found.open("rb") as file:
            os.fsync(file.fileno())
        found.replace(target)
    except OSError as error:
        raise CannotBackUp(f"cannot write {target}: {write_reason(error)}") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            found.with_name(f"{found.name}{suffix}").unlink(missing_ok=True)


def _put_aside(database: Path, now: int) -> Path | None:
    """Rename a database and its side files. Return the new path; None if no database existed."""
    aside = database.with_name(f"{database.name}.replaced-{now // 1_000_000}")
    for suffix in ("-wal", "-shm", ""):
        file = database.with_name(f"{database.name}{suffix}")
        if file.exists():
            file.rename(aside.with_name(f"{aside.name}{suffix}"))
    return aside if aside.exists() else None
