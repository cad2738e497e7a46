"""Downloads, verifies, unpacks and publishes one package.

`Fetch.run` blocks, so it needs a thread. After a crash, the next run continues the download.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import threading
import urllib.error
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import google_crc32c

from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive, NoSpace
from cogwork.archives.unpacking import unpack
from cogwork.core.error_text import error_text
from cogwork.core.errors import Interrupted
from cogwork.core.os_error_text import os_reason
from cogwork.net.http_download import HttpDownload, RemoteFile, show_url
from cogwork.packages.errors import BadPackage, PackageUnavailable
from cogwork.packages.sizes import format_size
from cogwork.packages.slot import PackageSlot
from cogwork.robot.hosts import PackageState

LIMITS: Final = ArchiveLimits(is_strict=True)
MAX_ARCHIVE: Final = 16 << 30
"""Maximum bytes of an archive."""
_CHUNK: Final = 1 << 20
_SPACE_INTERVAL: Final = 64 << 20
"""Bytes to download between two checks of the free space."""


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """The source of an archive: a URL, or a file on this computer."""

    url: str = ""
    file: Path | None = None
    credentials: dict[str, str] = field(default_factory=dict)
    """Headers that log in to the server of the URL."""

    def __str__(self) -> str:
        return str(self.file) if self.file is not None else show_url(self.url)


class FetchProgress(NamedTuple):
    state: PackageState = PackageState.DOWNLOADING
    done: int = 0
    total: int | None = None


class Fetch:
    def __init__(
        self, slot: PackageSlot, source: ArchiveSource, package: str, version: str, sha256: str
    ) -> None:
        """Set up a fetch. `package` and `version` are written to the record of the package.
        `sha256`: the hash of the archive; empty if unknown."""
        self.progress = FetchProgress()
        self.received = 0
        """Bytes received in this attempt."""
        self._slot = slot
        self._source = source
        self._package = package
        self._version = version
        self._sha256 = sha256.lower()
        self._cancelled = threading.Event()
        self._download: HttpDownload | None = None
        self._next_space_check = 0
        self._offset: int | None = None

    def run(self) -> None:
        """Fetch the package. Raise PackageUnavailable, BadPackage or Interrupted."""
        try:
            self._run()
        except urllib.error.HTTPError as error:
            error.close()
            raise PackageUnavailable(_describe_http_error(error)) from None
        except OSError as error:
            raise PackageUnavailable(_describe_os_error(error)) from None

    def cancel(self) -> None:
        """Interrupt `run`, from another thread."""
        self._cancelled.set()
        if self._download is not None:
            self._download.cancel()

    def _run(self) -> None:
        slot = self._slot
        if slot.directory.is_dir():
            return
        with slot.lock():
            if not slot.directory.is_dir():
                shutil.rmtree(slot.unpacked, ignore_errors=True)
                archive, remote = self._get_archive()
                checksum = self._verify(archive, remote)
                try:
                    self._unpack(archive)
                    slot.publish(self._package, self._version, checksum)
                finally:
                    # Free the space: unpacking may have failed because the disk is full.
                    shutil.rmtree(slot.unpacked, ignore_errors=True)
            slot.clear()

    def _get_archive(self) -> tuple[Path, RemoteFile]:
        self._check_cancelled()
        if self._source.file is not None:
            if not self._source.file.is_file():
                raise PackageUnavailable(f"{self._source.file} does not exist")
            return self._source.file, RemoteFile()
        self._download = HttpDownload(
            self._source.url,
            self._slot.partial,
            MAX_ARCHIVE,
            credentials=self._source.credentials,
            on_progress=self._on_received,
        )
        self._check_cancelled()
        try:
            return self._slot.partial, self._download.run()
        except ValueError as error:
            raise BadPackage(str(error)) from None

    def _on_received(self, received: int, total: int | None) -> None:
        if self._offset is None:
            self._offset = received
        self.received = received - self._offset
        self.progress = FetchProgress(PackageState.DOWNLOADING, received, total)
        if received >= self._next_space_check:
            self._next_space_check = received + _SPACE_INTERVAL
            self._require_space((total or received) - received)

    def _require_space(self, needed: int) -> None:
        free = shutil.disk_usage(self._slot.working).free
        if free < needed + LIMITS.reserve:
            raise PackageUnavailable(
                f"it needs {format_size(needed)} and a reserve of {format_size(LIMITS.reserve)}, "
                f"but only {format_size(free)} are free at {self._slot.directory.parent}; free "
                "some space"
            )

    def _verify(self, archive: Path, remote: RemoteFile) -> str:
        """Return the hash of the archive. Raise BadPackage if it differs from the expected hash."""
        size, done = archive.stat().st_size, 0
        sha256, crc32c = hashlib.sha256(), 0
        with archive.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self._check_cancelled()
                sha256.update(chunk)
                crc32c = google_crc32c.extend(crc32c, chunk)
                done += len(chunk)
                self.progress = FetchProgress(PackageState.UNPACKING, done // 2, size)
        found = base64.b64encode(crc32c.to_bytes(4, "big")).decode()
        for name, expected, actual in (
            ("SHA-256 hash", self._sha256, sha256.hexdigest()),
            ("checksum", _pad_checksum(remote.crc32c), found),
        ):
            if expected and expected != actual:
                self._discard()
                raise BadPackage(
                    f"the {name} of {self._source} is {actual}, not {expected}: it was "
                    "damaged during the download, or it is another file"
                )
        return f"sha256:{sha256.hexdigest()}"

    def _unpack(self, archive: Path) -> None:
        size = archive.stat().st_size
        self._slot.unpacked.mkdir(mode=0o755)

        def on_read(position: int) -> None:
            self._check_cancelled()
            self.progress = FetchProgress(PackageState.UNPACKING, (size + position) // 2, size)

        try:
            unpack(archive, self._slot.unpacked, on_read, LIMITS)
        except NoSpace as error:
            raise PackageUnavailable(str(error)) from None
        except BadArchive as error:
            self._discard()
            raise BadPackage(f"{self._source} cannot be unpacked: {error}") from None
        self._slot.unpacked.chmod(0o755)
        self._check_cancelled()

    def _discard(self) -> None:
        if self._download is not None:
            self._download.discard()

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Interrupted("the package is no longer needed")


def _pad_checksum(checksum: str) -> str:
    """Restore leading zero bytes of a four-byte checksum in base64, because some servers omit
    them."""
    if not checksum:
        return ""
    try:
        found = base64.b64decode(checksum)
    except ValueError:
        return checksum
    return base64.b64encode(found.rjust(4, b"\0")).decode()


def _describe_http_error(error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return f"the server refuses it ({error.code} {error.msg}); check the login of this machine"
    if error.code == 404:
        return f"the server does not have it ({error.code} {error.msg}); check the address"
    return f"the server answers {error.code} {error.msg}"


def _describe_os_error(error: OSError) -> str:
    if error.errno is not None and error.filename is not None:
        return f"{os_reason(error)}: {error.filename}"
    return error_text(error)
