"""A module that comes in one file: an archive, unpacked when it is new and when it has changed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import Workers
from cogwork.modules.meta import meta_in

_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")
_PROGRESS = 5.0
_STUCK = 60.0
"""Seconds without another file after which a disk counts as stuck."""
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
        done, moved = 0, clock.monotonic()
        while not work.done():
            await clock.wait({work}, _PROGRESS)
            if unpacking.done != done:
                done, moved = unpacking.done, clock.monotonic()
            if not work.done():
                _complain_if_stuck(archive, clock.monotonic() - moved)
                say(f"unpacking {archive}: {done // _MB} MB")
        return work.result()
    finally:
        unpacking.given_up.set()
        work.cancel()
        workers.close()


def _complain_if_stuck(archive: Path, seconds: float) -> None:
    if seconds >= _STUCK:
        raise BadBundle(
            f"unpacking {archive} got no further for {seconds:.0f} s; check the disk, and whether "
            "the file can be read"
        )


class _Unpacking:
    """In a thread: a large one takes a while."""

    def __init__(self, archive: Path, parent: Path) -> None:
        self.done = 0
        """Bytes of what it holds."""
        self.given_up = threading.Event()
        self._archive = archive
        self._parent = parent

    def carry_out(self) -> tuple[Path, Path]:
        try:
            folder = self._parent / self._version()
            if not folder.is_dir():
                self._unpack(folder)
                self._remove_others(folder)
        except (OSError, EOFError, tarfile.TarError, zlib.error, LZMAError) as error:
            raise BadBundle(f"{self._archive} cannot be unpacked: {error}") from error
        meta = meta_in(folder)
        program = meta.named("entrypoint") if meta is not None else None
        if program is None:
            raise BadBundle(
                f'{self._archive} holds no meta.json that names its "entrypoint"; add one, and '
                "pack it without a folder around it"
            )
        return folder, program

    def _version(self) -> str:
        """Another one as soon as somebody has written the file anew."""
        seen = self._archive.stat()
        mark = f"{self._archive.absolute()} {seen.st_size} {seen.st_mtime_ns}"
        return hashlib.sha256(mark.encode()).hexdigest()[:16]

    def _unpack(self, folder: Path) -> None:
        """Whole or not at all, whatever happens to the computer meanwhile."""
        self._parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=self._parent, prefix=".", suffix=".part"))
        try:
            with self._archive.open("rb") as file, tarfile.open(fileobj=file) as archive:
                for member in archive:
                    self._go_on()
                    archive.extract(member, part, filter="data")
                    self.done += member.size
            part.chmod(0o755)
            os.sync()
            self._go_on()
            part.rename(folder)
        except OSError:
            # Somebody else may have been faster.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _go_on(self) -> None:
        """Whoever has been given up changes nothing any more."""
        if self.given_up.is_set():
            raise BadBundle(f"unpacking {self._archive} was given up")

    def _remove_others(self, folder: Path) -> None:
        """What was unpacked before, and what is beside it: nobody runs it any more."""
        for each in self._parent.iterdir():
            if each == folder:
                continue
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
