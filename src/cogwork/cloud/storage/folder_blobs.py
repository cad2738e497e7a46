"""Blobs as files in a folder, for one cloud process and the commands beside it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, TypeVar

import google_crc32c

from cogwork.cloud.storage.blobs import (
    UPLOAD_TIMEOUT,
    Blob,
    BlobsUnavailable,
    BlobTooLarge,
    Check,
    UploadStalled,
)
from cogwork.cloud.storage.disk_space import DiskSpace
from cogwork.core.errors import Interrupted, NotFound
from cogwork.core.files import atomic
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import TooMuchWork, Workers

_THREADS: Final = 4
_WAITING: Final = 1024
_BATCH_SIZE: Final = 1 << 20
"""Bytes that are collected before a thread writes them."""
_CHUNK_SIZE: Final = 1 << 18
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


class FolderBlobs:
    """Blobs in files `ab/cdef…`, named after their digests. Uploads are written to `incoming`.

    The modification time of a file is the time of its last upload.
    """

    def __init__(
        self,
        folder: Path,
        disk: DiskSpace | None = None,
        upload_timeout: float = UPLOAD_TIMEOUT,
    ) -> None:
        """`disk` is a shared DiskSpace of the folder; by default, a new one."""
        self._folder = folder
        self._incoming = folder / "incoming"
        self._upload_timeout = upload_timeout
        atomic.make_directory(self._incoming)
        for each in self._incoming.iterdir():
            _remove_leftover(each)
        self._disk = disk or DiskSpace(folder)
        self._workers = Workers("blobs", threads=_THREADS, waiting=_WAITING)

    async def write(self, chunks: AsyncIterator[bytes], limit: int, check: Check) -> Blob:
        upload = await self._run(_Upload, self._incoming)
        try:
            batch = bytearray()
            async for chunk in self._within_timeout(chunks):
                if upload.size + len(batch) + len(chunk) > limit:
                    raise BlobTooLarge(f"the upload is larger than the limit of {limit >> 20} MiB")
                batch += chunk
                if len(batch) >= _BATCH_SIZE:
                    await self._run(self._append, upload, bytes(batch))
                    batch.clear()
            await self._run(self._append, upload, bytes(batch))
            return await self._run(self._finish, upload, check)
        finally:
            self._submit(upload.discard)

    async def read(
        self, digest: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        file = await self._run(_Content, self._path_of(digest), start)
        at = start
        try:
            while end is None or at < end:
                size = _CHUNK_SIZE if end is None else min(_CHUNK_SIZE, end - at)
                chunk = await self._run(file.read, size)
                if not chunk:
                    return
                at += len(chunk)
                yield chunk
        finally:
            self._submit(file.close)

    async def delete_unused(self, used: Callable[[str], bool], before: float) -> int:
        return await self._run(self._delete_unused, used, before)

    async def aclose(self) -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def close() -> None:
            loop.call_soon_threadsafe(closed.set)

        self._workers.close_after(close)
        await closed.wait()

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            return await self._workers.run(work, *arguments)
        except OSError as error:
            raise BlobsUnavailable(f"the packages cannot be used: {os_reason(error)}") from error

    def _submit(self, clean_up: Callable[[], None]) -> None:
        """Clean up in a thread, because the lock may be held by the thread of a canceled call."""
        try:
            self._workers.submit(clean_up)
        except (TooMuchWork, Interrupted):
            clean_up()

    async def _within_timeout(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while True:
            try:
                async with asyncio.timeout(self._upload_timeout):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise UploadStalled(
                    f"the upload sent no data for {self._upload_timeout:g} s; upload it again"
                ) from None
            yield chunk

    def _append(self, upload: _Upload, data: bytes) -> None:
        self._disk.require(len(data))
        upload.append(data)

    def _finish(self, upload: _Upload, check: Check) -> Blob:
        blob = upload.complete(check)
        path = self._path_of(blob.digest)
        atomic.make_directory(path.parent)
        upload.path.replace(path)
        _sync_directory(path.parent)
        return blob

    def _delete_unused(self, used: Callable[[str], bool], before: float) -> int:
        found = 0
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if path.stat().st_mtime < before and not used(path.parent.name + path.name):
                path.unlink()
                found += 1
        return found

    def _path_of(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise NotFound(f'"{digest[:80]}" is not the digest of a package')
        return self._folder / digest[:2] / digest[2:]


class _Upload:
    """An upload in progress, with its checksums so far."""

    def __init__(self, directory: Path) -> None:
        descriptor, self.path = _create_locked(directory)
        self.size = 0
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._lock = threading.Lock()
        """Held while a thread uses the file, so that no other thread closes it."""
        self._sha256 = hashlib.sha256()
        self._crc32c = 0

    def append(self, data: bytes) -> None:
        with self._lock:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        self._sha256.update(data)
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        self.size += len(data)

    def complete(self, check: Check) -> Blob:
        """Complete the upload: run the check, sync the content to disk, and return its blob."""
        with self._lock:
            with self.path.open("rb") as content:
                check(content, self.size)
            os.fsync(self._file.fileno())
        return Blob(self._sha256.hexdigest(), self.size, self._crc32c)

    def discard(self) -> None:
        with self._lock:
            self._file.close()
            self.path.unlink(missing_ok=True)


def _create_locked(directory: Path) -> tuple[int, Path]:
    """Create a locked file. The lock tells other processes that the upload continues."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=directory)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # another process removed the file before it was locked


def _remove_leftover(path: Path) -> None:
    """Remove an unfinished upload, unless another process (`cogwork-cloud`) continues it."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


class _Content:
    """A stored blob that is open for reading."""

    def __init__(self, path: Path, start: int) -> None:
        try:
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError:
            raise NotFound("the content was deleted; upload it as a new version") from None
        self._file.seek(start)
        self._lock = threading.Lock()
        """Held while a thread uses the file, so that no other thread closes it."""

    def read(self, size: int) -> bytes:
        with self._lock:
            return self._file.read(size)

    def close(self) -> None:
        with self._lock:
            self._file.close()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
