"""Module bundles: archives that are unpacked if they are new or have changed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.archives.tar import BadArchive, Truncated
from cogwork.archives.unpacking import unpack
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.files.atomic import make_directory
from cogwork.core.workers import Workers
from cogwork.modules.meta import read_meta

_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")
_PROGRESS_INTERVAL = 5.0
_STALL_TIMEOUT = 60.0
"""Seconds without progress after which the disk is considered stuck."""
_SYNC_TIMEOUT = 600.0
"""Timeout in seconds for a sync, which also writes the data of other processes."""
_MB = 1_000_000


class BadBundle(CogworkError):
    """The archive does not contain a usable module."""

    status = "FAILED_PRECONDITION"


def is_bundle(file: Path) -> bool:
    return file.name.lower().endswith(_SUFFIXES)


async def unpack_bundle(
    name: str, archive: Path, home: Path, log: Callable[[str], None], clock: Clock
) -> tuple[Path, Path]:
    """Unpack a module, and return its folder and its program. Raise BadBundle or BadMeta."""
    workers = Workers(f"unpacking {name}")
    unpacker = _Unpacker(archive, home / "modules" / name)
    work = asyncio.ensure_future(workers.run(unpacker.run))
    try:
        await _wait_unpacked(unpacker, work, log, clock)
        return work.result()
    finally:
        unpacker.cancelled.set()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        workers.close()


async def _wait_unpacked(
    unpacker: _Unpacker, work: asyncio.Future[Any], log: Callable[[str], None], clock: Clock
) -> None:
    """Wait until the work is done. Raise BadBundle if it makes no progress."""
    seen, since = unpacker.progress, clock.monotonic()
    while not work.done():
        await clock.wait({work}, _PROGRESS_INTERVAL)
        if unpacker.progress != seen:
            seen, since = unpacker.progress, clock.monotonic()
        stuck = clock.monotonic() - since
        if work.done():
            return
        if stuck >= (_STALL_TIMEOUT if not seen.written else _SYNC_TIMEOUT):
            raise BadBundle(
                f"unpacking {unpacker.archive} made no progress for {stuck:.0f} s; check the disk, "
                "and whether the file can be read"
            )
        log(f"unpacking {unpacker.archive}: {seen}")


class _Progress(NamedTuple):
    read: int = 0
    """Bytes read from the archive."""
    size: int = 0
    written: bool = False
    """Whether everything is written, so that only the sync remains."""

    def __str__(self) -> str:
        if self.written:
            return "syncing to disk"
        return f"{self.read // _MB} of {self.size // _MB} MB"


class _Unpacker:
    """Unpacks an archive in a thread, because that can take long."""

    def __init__(self, archive: Path, parent: Path) -> None:
        self.archive = archive
        self.progress = _Progress()
        self.cancelled = threading.Event()
        self._parent = parent

    def run(self) -> tuple[Path, Path]:
        try:
            folder = self._parent / self._version_id()
            if not folder.is_dir():
                self._unpack(folder)
                self._check_cancelled()
                self._remove_other_versions(folder)
        except Truncated as error:
            raise BadBundle(
                f"{self.archive} is not an archive, or is incomplete; pack it again with tar -czf"
            ) from error
        except (OSError, BadArchive) as error:
            raise BadBundle(f"{self.archive} cannot be unpacked: {error}") from error
        meta = read_meta(folder)
        program = meta.resolve_file("entrypoint") if meta is not None else None
        if program is None:
            raise BadBundle(
                f'{self.archive} contains no meta.json with an "entrypoint"; add one, and pack the '
                "files without a folder around them"
            )
        return folder, program

    def _version_id(self) -> str:
        """Return an identifier that changes whenever the file is written."""
        stat = self.archive.stat()
        self.progress = _Progress(size=stat.st_size)
        version = f"{self.archive.absolute()} {stat.st_size} {stat.st_mtime_ns}"
        return hashlib.sha256(version.encode()).hexdigest()[:16]

    def _unpack(self, folder: Path) -> None:
        """Unpack completely or not at all, even if the computer crashes."""
        make_directory(self._parent, 0o750)
        part = Path(tempfile.mkdtemp(dir=self._parent, prefix=".", suffix=".part"))
        try:
            unpack(self.archive, part, self._report_read)
            part.chmod(0o755)
            self.progress = self.progress._replace(written=True)
            os.sync()
            self._check_cancelled()
            part.rename(folder)
        except OSError:
            # If the folder exists, another process has unpacked the archive first.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _report_read(self, position: int) -> None:
        self._check_cancelled()
        self.progress = self.progress._replace(read=position)

    def _check_cancelled(self) -> None:
        """Raise BadBundle if the work was cancelled, so that it changes nothing more."""
        if self.cancelled.is_set():
            raise BadBundle(f"unpacking {self.archive} was cancelled")

    def _remove_other_versions(self, folder: Path) -> None:
        """Remove other versions and leftovers, which are no longer in use."""
        for each in self._parent.iterdir():
            if each == folder:
                continue
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
