"""A module that comes in one file: an archive, unpacked when it is new and when it has changed."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import Workers
from cogwork.modules.meta import meta_in

_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")
_PROGRESS = 5.0
_STUCK = 60.0
"""Seconds in which nothing is read, after which a disk counts as stuck."""
_SYNCING = 600.0
"""Seconds that it gets to write: also what others have written."""
_MB = 1_000_000


class BadBundle(CogworkError):
    """An archive that no module can be started from."""

    status = "FAILED_PRECONDITION"


def is_bundle(file: Path) -> bool:
    return file.name.lower().endswith(_SUFFIXES)


async def unpacked(
    name: str, archive: Path, home: Path, say: Callable[[str], None], clock: Clock
) -> tuple[Path, Path]:
    """The folder of the module, and the program in it. Raises BadBundle and BadMeta."""
    workers = Workers(f"unpacking {name}")
    unpacking = _Unpacking(archive, home / "modules" / name)
    work = asyncio.ensure_future(workers.run(unpacking.carry_out))
    try:
        await _watched(unpacking, work, say, clock)
        return work.result()
    finally:
        unpacking.given_up.set()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        workers.close()


async def _watched(
    unpacking: _Unpacking, work: asyncio.Future[Any], say: Callable[[str], None], clock: Clock
) -> None:
    """Until it is done, or gets no further."""
    seen, since = unpacking.progress, clock.monotonic()
    while not work.done():
        await clock.wait({work}, _PROGRESS)
        if unpacking.progress != seen:
            seen, since = unpacking.progress, clock.monotonic()
        stuck = clock.monotonic() - since
        if work.done():
            return
        if stuck >= (_STUCK if not seen.written else _SYNCING):
            raise BadBundle(
                f"unpacking {unpacking.archive} got no further for {stuck:.0f} s; check the disk, "
                "and whether the file can be read"
            )
        say(f"unpacking {unpacking.archive}: {seen}")


class _Progress(NamedTuple):
    read: int = 0
    """Bytes of the archive."""
    size: int = 0
    written: bool = False
    """Whether all that is left is the disk's to do."""

    def __str__(self) -> str:
        if self.written:
            return "the disk is writing it"
        return f"{self.read // _MB} of {self.size // _MB} MB"


class _Reading(io.FileIO):
    """The archive, which tells how far it has been read."""

    def __init__(self, file: Path, tell: Callable[[int], None]) -> None:
        super().__init__(file)
        self._tell = tell

    def read(self, size: int | None = -1) -> bytes:
        self._tell(self.tell())
        return super().read(-1 if size is None else size) or b""


class _Unpacking:
    """In a thread: a large one takes a while."""

    def __init__(self, archive: Path, parent: Path) -> None:
        self.archive = archive
        self.progress = _Progress()
        self.given_up = threading.Event()
        self._parent = parent

    def carry_out(self) -> tuple[Path, Path]:
        try:
            folder = self._parent / self._version()
            if not folder.is_dir():
                self._unpack(folder)
                self._go_on()
                self._remove_others(folder)
        except (EOFError, tarfile.ReadError, zlib.error, LZMAError) as error:
            raise BadBundle(
                f"{self.archive} is no archive, or is not whole; pack it again with tar -czf"
            ) from error
        except (OSError, tarfile.TarError) as error:
            raise BadBundle(f"{self.archive} cannot be unpacked: {error}") from error
        meta = meta_in(folder)
        program = meta.named("entrypoint") if meta is not None else None
        if program is None:
            raise BadBundle(
                f'{self.archive} holds no meta.json that names its "entrypoint"; add one, and '
                "pack it without a folder around it"
            )
        return folder, program

    def _version(self) -> str:
        """Another one as soon as somebody has written the file anew."""
        seen = self.archive.stat()
        self.progress = _Progress(size=seen.st_size)
        mark = f"{self.archive.absolute()} {seen.st_size} {seen.st_mtime_ns}"
        return hashlib.sha256(mark.encode()).hexdigest()[:16]

    def _unpack(self, folder: Path) -> None:
        """Whole or not at all, whatever happens to the computer meanwhile."""
        self._parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=self._parent, prefix=".", suffix=".part"))
        try:
            with _Reading(self.archive, self._read) as file, tarfile.open(fileobj=file) as archive:
                archive.extractall(part, filter="data")
            part.chmod(0o755)
            self.progress = self.progress._replace(written=True)
            os.sync()
            self._go_on()
            part.rename(folder)
        except OSError:
            # Somebody else may have been faster.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _read(self, position: int) -> None:
        self._go_on()
        self.progress = self.progress._replace(read=position)

    def _go_on(self) -> None:
        """Whoever has been given up changes nothing any more."""
        if self.given_up.is_set():
            raise BadBundle(f"unpacking {self.archive} was given up")

    def _remove_others(self, folder: Path) -> None:
        """What was unpacked before, and what is beside it: nobody runs it any more."""
        for each in self._parent.iterdir():
            if each == folder:
                continue
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
