"""The implementation of `cogwork-cloud release`. The cloud may be running."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.storage.blobs import Blobs
from cogwork.cloud.storage.folder_blobs import FolderBlobs
from cogwork.cloud.storage.records import Records, Transaction
from cogwork.cloud.storage.sqlite_records import SqliteRecords, read_records, write_records
from cogwork.cloud.updates.installer_script import choose_releases, make_script
from cogwork.cloud.updates.release_archive import MAX_SIZE, ArchiveManifest, read_manifest
from cogwork.cloud.updates.releases import Release, add_release, list_releases
from cogwork.cloud.updates.rollout import Rollout
from cogwork.cloud.updates.rollout_status import format_status, read_status
from cogwork.cloud.updates.rollouts import (
    RolloutPlan,
    pause_rollout,
    resume_rollout,
    start_rollout,
)
from cogwork.core.clock import SystemClock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.escape import escape_json
from cogwork.core.files import atomic
from cogwork.core.os_error_text import os_reason
from cogwork.core.versions.product import Product

_OK: Final = 0
_CHUNK: Final = 1 << 20

T = TypeVar("T")


class CannotReadRelease(CogworkError):
    """The archive of a release cannot be read."""


def add(data: Path, files: Sequence[Path]) -> int:
    directory = _require_cloud(data)

    async def run() -> None:
        records = SqliteRecords(directory.records, migrates=False)
        blobs = FolderBlobs(directory.blobs)
        try:
            for file in files:
                release = await store_release(records, blobs, file, _now())
                print(f"added {release.product} {release.version} for {release.platform}")
        finally:
            await blobs.aclose()
            await records.aclose()

    asyncio.run(run())
    return _OK


async def store_release(records: Records, blobs: Blobs, file: Path, now: int) -> Release:
    """Store a release archive, and return the release. Raise CannotReadRelease or ReleaseExists."""
    manifests: list[ArchiveManifest] = []

    def check(content: IO[bytes], _: int) -> None:
        manifests.append(read_manifest(content))

    try:
        with await asyncio.to_thread(file.open, "rb") as source:
            blob = await blobs.write(_read_chunks(source), MAX_SIZE, check)
        return await records.write(lambda tx: add_release(tx, manifests[0], blob, now))
    except OSError as error:
        raise CannotReadRelease(f"cannot read {file}: {os_reason(error)}") from None
    except InvalidRequest as error:
        raise CannotReadRelease(f"{file}: {error}") from None


def show_releases(data: Path, *, as_json: bool) -> int:
    found = read_records(_require_cloud(data).records, list_releases)
    if as_json:
        _print_json([each.as_json() for each in found])
    elif not found:
        print("no releases; add one with: cogwork-cloud release add FILE")
    else:
        for each in found:
            print(f"{each.product}  {each.version}  {each.platform}  {each.size:,}  {each.digest}")
    return _OK


def make_installer(data: Path, url: str, key: Path, output: Path) -> int:
    """Write the script that installs the newest releases on a machine."""
    chosen = choose_releases(read_records(_require_cloud(data).records, list_releases))
    try:
        script = make_script(chosen, url, _read_key(key))
        atomic.write(output, script.encode(), 0o755)
    except OSError as error:
        raise CannotReadRelease(f"{error.filename}: {os_reason(error)}") from None
    for platform, products in chosen.items():
        named = " and ".join(f"{each.product} {each.version}" for each in products.values())
        print(f"{platform}: {named}")
    print(f"wrote {output}; on a machine, run: sudo python3 -I {output.name}")
    return _OK


def _read_key(path: Path) -> str:
    """Return the public key in a file. Raise OSError or CannotReadRelease."""
    data = path.read_bytes()
    try:
        key = load_pem_public_key(data)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise CannotReadRelease(
            f"{path} is not a public key: an Ed25519 key in PEM format is required"
        )
    return data.decode()


def start(data: Path, channel: str, product: Product, version: str, plan: RolloutPlan) -> int:
    found = _transact(data, lambda tx: start_rollout(tx, channel, product, version, plan, _now()))
    share = f"{found.reach} % of the machines"
    what = (
        f"takes {share} back to {product} {version}"
        if plan.is_rollback
        else f"rolls out {product} {version} to {share}"
    )
    print(f"{channel} {what}; watch it with: cogwork-cloud release status")
    return _OK


def pause(data: Path, channel: str, product: Product) -> int:
    found = _transact(data, lambda tx: pause_rollout(tx, channel, product, _now()))
    print(f"{_name(found)} is paused: machines that do not have it keep what they have")
    return _OK


def resume(data: Path, channel: str, product: Product) -> int:
    found = _transact(data, lambda tx: resume_rollout(tx, channel, product, _now()))
    print(f"{_name(found)} goes on with {found.reach} % of the machines")
    return _OK


def show_status(data: Path, *, as_json: bool) -> int:
    found = read_records(_require_cloud(data).records, read_status)
    if as_json:
        _print_json([each.as_json() for each in found])
    else:
        print(format_status(found))
    return _OK


def _transact(data: Path, work: Callable[[Transaction], T]) -> T:
    return write_records(_require_cloud(data).records, work, migrates=False)


def _require_cloud(data: Path) -> CloudDirectory:
    directory = CloudDirectory(data)
    directory.require_current()
    return directory


async def _read_chunks(source: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(source.read, _CHUNK):
        yield chunk


def _name(rollout: Rollout) -> str:
    return f"the rollout of {rollout.product} {rollout.version} on {rollout.channel}"


def _print_json(found: Any) -> None:
    print(escape_json(json.dumps(found, indent=2, ensure_ascii=False)))


def _now() -> int:
    return int(SystemClock().time() * 1e6)
