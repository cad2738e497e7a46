"""Upgrade of a cloud directory from version 0.1.

Version 0.1 stored its keys in four files beside the database. One of them was used for digests of
secrets and to seal secrets. Every step can be repeated, so the next start continues an interrupted
upgrade.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cogwork.auth.signing_key import SigningKey
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, CloudSettings, NoCloud
from cogwork.cloud.fleet.local_keys import is_local_key
from cogwork.cloud.identity.cloud_record import insert_cloud, read_cloud
from cogwork.cloud.identity.token_fingerprint import fingerprint_of
from cogwork.cloud.keys.cloud_key import KeyPurpose
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.key_material import (
    KeyMaterial,
    create_material,
    describe_authority,
    describe_part_token_key,
    describe_token_key,
    read_authority,
    read_token_key,
)
from cogwork.cloud.keys.key_records import list_cloud_keys
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.keys.machine_tokens import PartTokenKey
from cogwork.cloud.keys.resealing import SEALED_TABLES
from cogwork.cloud.keys.sealer import CannotUnseal, Sealer
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query
from cogwork.cloud.storage.sqlite_records import copy_records, write_records
from cogwork.cloud.storage.tables import FormerFingerprintRow
from cogwork.core.clock import Clock
from cogwork.core.files import atomic

BACKUP: Final = "before-upgrade"
_SIGNING_KEY: Final = "signing-key.pem"
_PART_TOKEN_KEY: Final = "machine-token-key.pem"  # noqa: S105 - a file
_AUTHORITY: Final = "ca.pem"
_AUTHORITY_KEY: Final = "ca-key.pem"
_PRIVATE_FILES: Final = (_SIGNING_KEY, _PART_TOKEN_KEY, _AUTHORITY_KEY)
_FILES: Final = (*_PRIVATE_FILES, _AUTHORITY, "cloud.json")

_log = logging.getLogger("cloud.upgrade")

T = TypeVar("T")


def upgrade_directory(directory: CloudDirectory, clock: Clock) -> None:
    """Upgrade the directory. Raise NoCloud, without a change, if files are missing or wrong."""
    for step in STEPS:
        step(directory, clock)
    _log.warning(
        "upgraded the cloud in %s from version 0.1. Its former files and keys are in %s; delete "
        "that directory when you no longer need version 0.1. Back up the root key %s separately "
        "from the records",
        *(directory.path, directory.path / BACKUP, directory.root_key),
    )


def _back_up(directory: CloudDirectory, _: Clock) -> None:
    directory.require_records()
    target = directory.path / BACKUP
    if (target / "records.db").exists():
        return
    _require_files(directory)
    atomic.make_directory(target)
    for name in _FILES:
        atomic.write(target / name, (directory.path / name).read_bytes(), 0o600)
    # Copy the database last, so that a backup with a database is always complete.
    unfinished = target / "records.new.db"
    unfinished.unlink(missing_ok=True)
    unfinished.touch(0o600)
    copy_records(directory.records, unfinished)
    unfinished.replace(target / "records.db")


def _import_keys(directory: CloudDirectory, clock: Clock) -> None:
    """Replace keys, digests and sealed secrets in one transaction."""

    def work(tx: Transaction) -> None:
        if read_cloud(tx) is not None:
            return
        _require_files(directory)
        signing_key = _read_key(directory.path / _SIGNING_KEY, read_token_key)
        now = int(clock.time() * 1e6)
        insert_cloud(tx, now)
        for material in _list_materials(directory, signing_key, now):
            insert(tx, material.seal(root, now, now))
        keyring = Keyring(CloudKeys(root, clock, list_cloud_keys(tx)))
        _replace_digests(tx, signing_key, keyring)
        # Delete claim codes: they cannot be converted, and expire after 15 minutes anyway.
        tx.execute("DELETE FROM claim_code")

    has_root_key = directory.given_root_key or directory.root_key.exists()
    root = directory.read_root_key() if has_root_key else directory.create_root_key()
    write_records(directory.records, work)


def _finish(directory: CloudDirectory, _: Clock) -> None:
    cloud = write_records(directory.records, read_cloud)
    assert cloud is not None
    for name in _PRIVATE_FILES:
        (directory.path / name).unlink(missing_ok=True)
    # Save the settings last, because they mark the upgrade as complete.
    directory.save_settings(CloudSettings(directory.read_domain(), cloud.id))


STEPS: Final[tuple[Callable[[CloudDirectory, Clock], None], ...]] = (
    _back_up,
    _import_keys,
    _finish,
)


def _require_files(directory: CloudDirectory) -> None:
    for name in _FILES:
        if not (directory.path / name).exists():
            raise NoCloud(
                f"{directory.path / name} is missing, and without it, the cloud would refuse its "
                "machines; restore it from a backup"
            )


def _list_materials(
    directory: CloudDirectory, signing_key: SigningKey, now: int
) -> tuple[KeyMaterial, ...]:
    certificate = (directory.path / _AUTHORITY).read_text()
    authority = _read_key(
        directory.path / _AUTHORITY_KEY, lambda pem: read_authority(certificate, pem)
    )
    return (
        describe_token_key(signing_key),
        describe_part_token_key(_read_key(directory.path / _PART_TOKEN_KEY, PartTokenKey)),
        describe_authority(authority),
        create_material(KeyPurpose.SEALING, now),
    )


def _read_key(path: Path, read: Callable[[bytes], T]) -> T:
    try:
        return read(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise NoCloud(f"cannot use {path}: {error}; restore it from a backup") from None


class _SealedRow(NamedTuple):
    id: str
    digest: str
    sealed: str


def _replace_digests(tx: Transaction, signing_key: SigningKey, keyring: Keyring) -> None:
    former = Sealer(
        HKDF(SHA256(), 32, salt=None, info=b"sealed secrets").derive(
            signing_key.private.private_bytes_raw()
        )
    )
    unreadable = upgraded = 0
    for table in SEALED_TABLES:
        for row in query(tx, _SealedRow, f"SELECT id, digest, sealed FROM {table}"):  # noqa: S608 - a constant
            try:
                text = former.unseal(row.sealed).decode()
            except CannotUnseal:
                # Give up the secret: version 0.1 could not check it either, because the digest
                # needs the lost key.
                unreadable += 1
                tx.execute(f"UPDATE {table} SET sealed = '' WHERE id = ?", row.id)  # noqa: S608
                continue
            upgraded += 1
            digest = keyring.digest(text)
            is_shown = table != "api_key" or is_local_key(tx, row.id)
            tx.execute(
                f"UPDATE {table} SET digest = ?, sealed = ? WHERE id = ?",  # noqa: S608
                *(digest, keyring.seal(text) if is_shown else "", row.id),
            )
            # Keep the fingerprint of the former digest: existing tokens have it, and do not expire.
            insert(tx, FormerFingerprintRow(digest, fingerprint_of(row.digest)))
    if unreadable and not upgraded:
        raise NoCloud(
            f"{_SIGNING_KEY} does not belong to records.db; restore both from the same backup"
        )
    if unreadable:
        _log.warning(
            "%d keys and secrets cannot be used, because they were made with a signing key that is "
            "lost; rotate them",
            unreadable,
        )
