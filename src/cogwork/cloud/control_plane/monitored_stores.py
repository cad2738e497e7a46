"""Wrappers of the stores that report failed writes to the health of the cloud."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, TypeVar

from cogwork.cloud.control_plane.health import CloudHealth, StoreState
from cogwork.cloud.storage.blobs import Blob, Blobs, BlobsUnavailable, Check
from cogwork.cloud.storage.log_store import (
    LogLine,
    LogPage,
    LogQuery,
    LogStore,
    LogsUnavailable,
    LogUsage,
)
from cogwork.cloud.storage.records import Records, RecordsUnavailable, Transaction

RECORDS: Final = "records"
LOGS: Final = "logs"
PACKAGES: Final = "packages"

_LASTS: Final = 300.0
"""Seconds for which a failed write is shown. Another failure restarts the time."""

T = TypeVar("T")


class MonitoredRecords:
    def __init__(self, records: Records, health: CloudHealth) -> None:
        self._records = records
        self._health = health

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await self._records.read(work)

    async def write(
        self, work: Callable[[Transaction], T], then: Callable[[T], None] | None = None
    ) -> T:
        try:
            found = await self._records.write(work, then)
        except RecordsUnavailable as error:
            self._health.report(RECORDS, StoreState.FAILING, str(error))
            raise
        self._health.recover(RECORDS)
        return found

    async def aclose(self) -> None:
        await self._records.aclose()


class MonitoredLogStore:
    def __init__(self, logs: LogStore, health: CloudHealth) -> None:
        self._logs = logs
        self._health = health

    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        try:
            await self._logs.append(lines, received_at)
        except LogsUnavailable as error:
            self._health.report(LOGS, StoreState.FAILING, str(error), _LASTS)
            raise
        self._health.recover(LOGS)

    async def read(self, query: LogQuery, now: int) -> LogPage:
        return await self._logs.read(query, now)

    async def expire(self, now: int) -> None:
        await self._logs.expire(now)

    async def measure(self, now: int) -> Sequence[LogUsage]:
        return await self._logs.measure(now)

    async def aclose(self) -> None:
        await self._logs.aclose()


class MonitoredBlobs:
    def __init__(self, blobs: Blobs, health: CloudHealth) -> None:
        self._blobs = blobs
        self._health = health

    async def write(self, chunks: AsyncIterator[bytes], limit: int, check: Check) -> Blob:
        try:
            found = await self._blobs.write(chunks, limit, check)
        except BlobsUnavailable as error:
            self._health.report(PACKAGES, StoreState.FAILING, str(error), _LASTS)
            raise
        self._health.recover(PACKAGES)
        return found

    def read(self, digest: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        return self._blobs.read(digest, start, end)

    async def delete_unused(self, used: Callable[[str], bool], before: float) -> int:
        return await self._blobs.delete_unused(used, before)

    async def aclose(self) -> None:
        await self._blobs.aclose()
