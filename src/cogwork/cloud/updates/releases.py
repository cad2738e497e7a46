"""Releases: the archives for updates of machines, which never change."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogwork.cloud.storage.blobs import Blob
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values, select, select_one
from cogwork.cloud.updates.release_archive import ArchiveManifest
from cogwork.core.errors import CogworkError
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import order_of


class ReleaseExists(CogworkError):
    """Another archive has the same product, version and platform."""

    status = "ALREADY_EXISTS"


class Release(NamedTuple):
    """A stored release."""

    product: Product
    version: str
    platform: str
    digest: str
    """The SHA-256 digest in hexadecimal."""
    size: int
    filename: str
    created_at: int
    minimum_version: str
    """The oldest version that machines accept after this release; empty to accept all."""

    @property
    def path(self) -> str:
        """The path of the download URL."""
        return f"/releases/{self.digest}/{self.filename}"

    def as_json(self) -> dict[str, Any]:
        return {
            "product": self.product,
            "version": self.version,
            "platform": self.platform,
            "sha256": self.digest,
            "size": self.size,
            "filename": self.filename,
            "minimum_version": self.minimum_version,
        }


def add_release(tx: Transaction, manifest: ArchiveManifest, blob: Blob, now: int) -> Release:
    """Add a release, or return the existing one if its content is the same.

    Raise ReleaseExists.
    """
    known = find_release(tx, manifest.product, manifest.version, manifest.platform)
    if known is not None and known.digest != blob.digest:
        raise ReleaseExists(
            f"{manifest.product} {manifest.version} for {manifest.platform} already exists with "
            "other content; publish your changes as a new version"
        )
    if known is not None:
        return known
    new = Release(
        product=manifest.product,
        version=manifest.version,
        platform=manifest.platform,
        digest=blob.digest,
        size=blob.size,
        filename=manifest.filename,
        created_at=now,
        minimum_version=manifest.minimum_version,
    )
    insert(tx, new)
    return new


def find_release(tx: Transaction, product: Product, version: str, platform: str) -> Release | None:
    return select_one(
        tx,
        Release,
        "WHERE product = ? AND version = ? AND platform = ?",
        *(product, version, platform),
    )


def find_file(tx: Transaction, digest: str, filename: str) -> Release | None:
    return select_one(tx, Release, "WHERE digest = ? AND filename = ?", digest, filename)


def list_releases(tx: Transaction) -> list[Release]:
    """Return all releases, the newest last."""
    return select(tx, Release, "ORDER BY created_at, digest")


def list_platforms(tx: Transaction, product: Product, version: str) -> list[str]:
    return query_values(
        tx,
        str,
        "SELECT platform FROM release WHERE product = ? AND version = ? ORDER BY platform",
        *(product, version),
    )


def find_strictest(tx: Transaction, product: Product) -> Release | None:
    """Return the release with the highest minimum version; None if no release has one."""
    found = select(tx, Release, "WHERE product = ? AND minimum_version != ''", product)
    return max(found, key=lambda each: order_of(each.minimum_version), default=None)
