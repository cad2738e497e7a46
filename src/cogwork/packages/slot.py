"""The place of one package on the disk.

Its final directory is either complete or missing. All work happens in a working directory on the
same file system, which one process at a time may use.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.core.files import atomic
from cogwork.packages.errors import PackageUnavailable

WORKING: Final = "part"
"""Name of the directory that contains the working directories."""
_RECORD_SUFFIX: Final = ".status.json"
_LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PackageSlot:
    directory: Path
    """The directory of the package: complete if it exists."""

    @property
    def record(self) -> Path:
        """A file that describes the package. A directory without this file was made by hand."""
        return self.directory.with_name(f"{self.directory.name}{_RECORD_SUFFIX}")

    @property
    def working(self) -> Path:
        return self.directory.parent / WORKING / self.directory.name

    @property
    def partial(self) -> Path:
        """The archive while it is being downloaded."""
        return self.working / "archive.part"

    @property
    def unpacked(self) -> Path:
        return self.working / "unpacked"

    @property
    def _lock(self) -> Path:
        return self.working / "lock"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Create and lock the working directory. Raise PackageUnavailable or OSError."""
        atomic.make_directory(self.working)
        lock = os.open(self._lock, _LOCK_FLAGS, 0o600)
        try:
            if not self._try_lock(lock):
                raise PackageUnavailable(
                    "another server on this computer is downloading it; waiting for that server"
                )
            yield
        finally:
            os.close(lock)

    def _try_lock(self, lock: int) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Check that the lock file still exists: its last holder may have removed it before this
            # lock succeeded.
            return os.path.samestat(os.fstat(lock), self._lock.stat())
        except (BlockingIOError, FileNotFoundError):
            return False

    def publish(self, package: str, version: str, checksum: str) -> None:
        """Move the unpacked files to the final directory, completely or not at all. Raise
        OSError."""
        record = {
            "package_id": package,
            "version": version,
            "modified_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "sync_status": "done",
            "tarball_checksum": checksum,
        }
        # Write the data of all files before the directory with the final name appears.
        os.sync()
        atomic.write(self.record, json.dumps(record).encode())
        self.unpacked.rename(self.directory)
        sync_directory(self.directory.parent)

    def clear(self) -> None:
        """Remove the working directory. The caller must hold the lock."""
        shutil.rmtree(self.working, ignore_errors=True)

    def remove(self) -> None:
        """Remove the package: move its directory away, then delete the files. Raise OSError."""
        with self.lock():
            shutil.rmtree(self.unpacked, ignore_errors=True)
            self.directory.rename(self.unpacked)
            sync_directory(self.directory.parent)
            self.record.unlink(missing_ok=True)
            self.clear()


def sync_directory(directory: Path) -> None:
    opened = os.open(directory, _DIRECTORY_FLAGS)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
