"""The contract of the cloud's blobs, for every engine."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

import google_crc32c
import pytest

from cogwork.cloud.storage.blobs import Blob, Blobs, BlobTooLarge, UploadStalled
from cogwork.cloud.storage.disk_space import DiskLow, DiskSpace, Space
from cogwork.cloud.storage.folder_blobs import FolderBlobs
from cogwork.core.errors import InvalidRequest, NotFound

DEADLINE = 60.0
LIMIT = 8 << 20
CONTENT = bytes(range(256)) * 12_000


@pytest.fixture
async def blobs(tmp_path: Path) -> AsyncIterator[Blobs]:
    found = FolderBlobs(tmp_path / "blobs")
    yield found
    await found.aclose()


def accept(content: IO[bytes], size: int) -> None:
    assert len(content.read()) == size


async def chunks_of(content: bytes, size: int = 10_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def write(blobs: Blobs, content: bytes) -> Blob:
    async with asyncio.timeout(DEADLINE):
        return await blobs.write(chunks_of(content), LIMIT, accept)


async def read(blobs: Blobs, digest: str, start: int = 0, end: int | None = None) -> bytes:
    async with asyncio.timeout(DEADLINE):
        return b"".join([chunk async for chunk in blobs.read(digest, start, end)])


@pytest.mark.parametrize("content", [CONTENT, b"", b"x"])
async def test_content_is_read_as_it_was_written(blobs: Blobs, content: bytes) -> None:
    blob = await write(blobs, content)
    assert blob.digest == hashlib.sha256(content).hexdigest()
    assert blob.size == len(content)
    assert blob.crc32c == google_crc32c.value(content)
    assert await read(blobs, blob.digest) == content


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (5, None), (len(CONTENT) - 1, None), (1000, 2_000_000), (7, 7)]
)
async def test_ranges(blobs: Blobs, start: int, end: int | None) -> None:
    blob = await write(blobs, CONTENT)
    assert await read(blobs, blob.digest, start, end) == CONTENT[start:end]


async def test_same_content_is_one_blob(blobs: Blobs) -> None:
    found = await asyncio.gather(*(write(blobs, CONTENT) for _ in range(5)))
    assert len({*found}) == 1
    assert await read(blobs, found[0].digest) == CONTENT


async def test_content_is_read_in_small_pieces(blobs: Blobs) -> None:
    blob = await write(blobs, CONTENT)
    assert max([len(chunk) async for chunk in blobs.read(blob.digest)]) <= 1 << 20


@pytest.mark.parametrize("digest", ["0" * 64, "", "../records.db", "A" * 64])
async def test_unknown_blob_is_not_found(blobs: Blobs, digest: str) -> None:
    with pytest.raises(NotFound):
        await read(blobs, digest)


async def test_content_that_the_check_refuses_is_not_stored(blobs: Blobs) -> None:
    def refuse(content: IO[bytes], size: int) -> None:
        assert content.read() == CONTENT
        raise InvalidRequest("not an archive")

    with pytest.raises(InvalidRequest, match="not an archive"):
        await blobs.write(chunks_of(CONTENT), LIMIT, refuse)
    await assert_nothing_stored(blobs)


async def test_content_over_the_limit_is_not_stored(blobs: Blobs) -> None:
    await blobs.write(chunks_of(b"x" * 100), 100, accept)
    with pytest.raises(BlobTooLarge):
        await blobs.write(chunks_of(CONTENT), len(CONTENT) - 1, accept)
    await assert_nothing_stored(blobs)


async def test_interrupted_upload_is_not_stored(blobs: Blobs) -> None:
    async def break_off() -> AsyncIterator[bytes]:
        yield CONTENT
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.write(break_off(), LIMIT, accept)
    await assert_nothing_stored(blobs)


async def test_cancelled_upload_is_not_stored(blobs: Blobs) -> None:
    arrived = asyncio.Event()

    async def pause() -> AsyncIterator[bytes]:
        yield CONTENT
        arrived.set()
        await asyncio.Event().wait()

    writing = asyncio.create_task(blobs.write(pause(), LIMIT, accept))
    await asyncio.wait_for(arrived.wait(), DEADLINE)
    writing.cancel()
    await asyncio.wait({writing})
    await assert_nothing_stored(blobs)


async def test_unused_blobs_are_deleted_unless_they_are_new(blobs: Blobs) -> None:
    used, unused = await write(blobs, b"used"), await write(blobs, b"unused")
    now = time.time()
    assert await blobs.delete_unused({used.digest}.__contains__, now - 3600) == 0
    assert await blobs.delete_unused({used.digest}.__contains__, now + 3600) == 1
    assert await read(blobs, used.digest) == b"used"
    with pytest.raises(NotFound):
        await read(blobs, unused.digest)


async def test_reader_may_stop_early(blobs: Blobs) -> None:
    blob = await write(blobs, CONTENT)
    reading = blobs.read(blob.digest)
    assert await anext(reading)
    await reading.aclose()  # type: ignore[attr-defined]


async def assert_nothing_stored(blobs: Blobs) -> None:
    with pytest.raises(NotFound):
        await read(blobs, hashlib.sha256(CONTENT).hexdigest())


async def test_stalled_upload_ends(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path, upload_timeout=0.01)

    async def stall() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    with pytest.raises(UploadStalled):
        await blobs.write(stall(), LIMIT, accept)
    await blobs.aclose()
    assert [*(tmp_path / "incoming").iterdir()] == []


async def test_uploads_leave_the_reserve_of_the_disk(tmp_path: Path) -> None:
    measured = iter([1 << 29, 1 << 29, 0])
    disk = DiskSpace(tmp_path, lambda _: Space(1 << 30, next(measured)))
    blobs = FolderBlobs(tmp_path, disk)
    with pytest.raises(DiskLow):
        await write(blobs, CONTENT)
    await assert_nothing_stored(blobs)
    await blobs.aclose()
    assert [*(tmp_path / "incoming").iterdir()] == []


async def test_folder_has_only_complete_files(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "left-over").write_bytes(b"half")
    blobs = FolderBlobs(tmp_path)
    blob = await write(blobs, CONTENT)
    await blobs.aclose()
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert files == [tmp_path / blob.digest[:2] / blob.digest[2:]]
    assert files[0].stat().st_mode & 0o777 == 0o600


async def test_opening_the_folder_spares_the_uploads_of_others(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    is_reading, go_on = asyncio.Event(), asyncio.Event()

    async def upload() -> AsyncIterator[bytes]:
        yield CONTENT
        is_reading.set()
        await go_on.wait()

    async with asyncio.timeout(DEADLINE):
        writing = asyncio.create_task(blobs.write(upload(), LIMIT, accept))
        await is_reading.wait()
        other = FolderBlobs(tmp_path)
        go_on.set()
        blob = await writing
        assert await read(other, blob.digest) == CONTENT
    await other.aclose()
    await blobs.aclose()
