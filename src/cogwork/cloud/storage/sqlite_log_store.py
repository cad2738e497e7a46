"""Logs in SQLite files, one for each day of receipt.

A day is expired by deleting its file.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from cogwork.cloud.storage.disk_space import DiskSpace
from cogwork.cloud.storage.log_store import (
    RETENTION,
    LogLine,
    LogPage,
    LogPosition,
    LogQuery,
    LogsUnavailable,
    LogUsage,
    SearchTooSlow,
    day_of,
)
from cogwork.cloud.storage.sqlite_log_files import LogConnections, LogReaders, delete_older
from cogwork.core.files.atomic import make_directory
from cogwork.core.workers import Workers

READERS: Final = 4
"""Number of searches that run at the same time."""
SEARCH_SECONDS: Final = 10.0
"""Time limit of a search in seconds."""

_DAY_FILE: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.db")
_WAITING: Final = 1024
_TIMEOUT: Final = 10.0
_MAINTENANCE_TIMEOUT: Final = 600.0
_GROWTH: Final = 4
"""Bytes on disk per byte of an entry, for its columns, the index and the write-ahead log."""
_STEPS: Final = 10_000
"""SQLite instructions between two checks for cancellation, enough to search about 500 lines."""

_CONTAINS: Final = """CASE WHEN length(message) = length(CAST(message AS BLOB))
THEN instr(lower(message), ?) ELSE instr(casefold(message), ?) END > 0"""
"""SQL that tests whether a message contains a text. ASCII messages are compared inside SQLite,
because calls into Python for each line would block the event loop."""

T = TypeVar("T")


class SqliteLogStore:
    def __init__(
        self,
        directory: Path,
        disk: DiskSpace | None = None,
        search_seconds: float = SEARCH_SECONDS,
    ) -> None:
        """`disk` is a shared DiskSpace of the directory; by default, a new one."""
        self._directory = directory
        self._search_seconds = search_seconds
        make_directory(directory)
        self._disk = disk or DiskSpace(directory)
        self._writer = LogConnections(directory, 1, creates=True)
        self._readers = LogReaders(directory)
        self._write_worker = Workers("logs", waiting=_WAITING)
        self._read_workers = Workers("logs-read", threads=READERS, waiting=_WAITING)
        """Searches have their own workers, so that they do not delay new lines."""
        self._maintenance_worker = Workers("logs-maintenance")

    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        await _run(self._write_worker, lambda: self._append(lines, received_at))

    async def read(self, query: LogQuery, now: int) -> LogPage:
        search = _Search()
        try:
            with _explaining_errors():
                async with asyncio.timeout(self._search_seconds):
                    return await self._read_workers.run(self._read, search, query, now)
        except TimeoutError:
            raise SearchTooSlow(
                f"the search through the log took longer than {self._search_seconds:g} s; search "
                "a shorter time, with a start and an end, or fewer levels"
            ) from None
        finally:
            search.end()

    async def expire(self, now: int) -> None:
        await _run(self._maintenance_worker, lambda: self._expire(now), _MAINTENANCE_TIMEOUT)

    async def measure(self, now: int) -> Sequence[LogUsage]:
        return await _run(
            self._maintenance_worker, lambda: self._measure(now), _MAINTENANCE_TIMEOUT
        )

    async def aclose(self) -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def close() -> None:
            self._writer.close()
            self._readers.close()
            loop.call_soon_threadsafe(closed.set)

        self._maintenance_worker.close_after(
            lambda: self._read_workers.close_after(lambda: self._write_worker.close_after(close))
        )
        await closed.wait()

    def _append(self, lines: Sequence[LogLine], received_at: int) -> None:
        self._disk.require(_GROWTH * sum(len(line.entry) for line in lines))
        connection = self._writer.open(day_of(received_at))
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(
                "INSERT INTO log (part_id, received_at, time, level, logger, message, entry) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((each.part_id, received_at, *each[1:]) for each in lines),
            )
            connection.execute("COMMIT")
        except BaseException:
            # If the disk is full, SQLite has already ended the transaction.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _read(self, search: _Search, query: LogQuery, now: int) -> LogPage:
        found: list[tuple[LogPosition, bytes]] = []
        with self._readers.take() as connections:
            for day in self._days_of(query, now):
                if (connection := connections.find(day)) is not None:
                    with search.limits(connection):
                        limit = query.limit + 1 - len(found)
                        found += _read_day(connection, day, query, now, limit)
                if len(found) > query.limit:
                    break
        shown = found[: query.limit]
        return LogPage(
            [entry for _, entry in shown], shown[-1][0] if len(found) > query.limit else None
        )

    def _days_of(self, query: LogQuery, now: int) -> Iterator[str]:
        """Return the days that may have lines for the query, in its order."""
        oldest = day_of(now - RETENTION)
        after = query.after.day if query.after is not None else None
        for day in sorted(self._days(), reverse=not query.oldest_first):
            is_before = after is not None and (day < after if query.oldest_first else day > after)
            if day >= oldest and not is_before:
                yield day

    def _measure(self, now: int) -> list[LogUsage]:
        oldest = day_of(now - RETENTION)
        found: list[LogUsage] = []
        with self._readers.take() as connections:
            for day in sorted(each for each in self._days() if each >= oldest):
                if (connection := connections.find(day)) is not None:
                    rows = connection.execute(
                        "SELECT part_id, COUNT(*), SUM(LENGTH(entry)) FROM log "
                        "WHERE received_at > ? GROUP BY part_id ORDER BY part_id",
                        (now - RETENTION,),
                    )
                    found += [LogUsage(part, day, lines, size) for part, lines, size in rows]
        return found

    def _expire(self, now: int) -> None:
        oldest = day_of(now - RETENTION)
        days = self._days()
        if oldest in days:
            delete_older(self._directory / f"{oldest}.db", now - RETENTION)
        self._readers.forget_before(oldest)
        for day in [each for each in days if each < oldest]:
            for suffix in ("", "-wal", "-shm"):
                (self._directory / f"{day}.db{suffix}").unlink(missing_ok=True)

    def _days(self) -> list[str]:
        names = (_DAY_FILE.fullmatch(each.name) for each in self._directory.iterdir())
        return [match[1] for match in names if match is not None]


class _Search:
    """A search that another thread can end."""

    def __init__(self) -> None:
        self._is_over = threading.Event()

    def end(self) -> None:
        self._is_over.set()

    @contextlib.contextmanager
    def limits(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Interrupt the statements of the block when the search has ended."""
        connection.set_progress_handler(self._is_over.is_set, _STEPS)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)


def _read_day(
    connection: sqlite3.Connection, day: str, query: LogQuery, now: int, limit: int
) -> list[tuple[LogPosition, bytes]]:
    conditions = ["part_id = ?", "received_at > ?"]
    values: list[str | int] = [query.part_id, now - RETENTION]
    if query.after is not None and query.after.day == day:
        sign = ">" if query.oldest_first else "<"
        conditions.append(f"number {sign} ?")
        values.append(query.after.number)
    if query.logger:
        conditions.append("instr(logger, ?) = 1")
        values.append(query.logger)
    if query.start is not None:
        conditions.append("time >= ?")
        values.append(query.start)
    if query.end is not None:
        conditions.append("time < ?")
        values.append(query.end)
    if query.levels:
        conditions.append(f"level IN ({', '.join('?' * len(query.levels))})")
        values += sorted(query.levels)
    if query.text:
        conditions.append(_CONTAINS)
        values += [query.text.casefold()] * 2
    where, order = " AND ".join(conditions), "ASC" if query.oldest_first else "DESC"
    rows = connection.execute(  # the conditions are constants, the values are parameters
        f"SELECT number, entry FROM log WHERE {where} ORDER BY number {order} LIMIT {limit}",  # noqa: S608
        values,
    )
    return [(LogPosition(day, number), entry) for number, entry in rows]


async def _run(worker: Workers, work: Callable[[], T], timeout: float = _TIMEOUT) -> T:
    try:
        with _explaining_errors():
            async with asyncio.timeout(timeout):
                return await worker.run(work)
    except TimeoutError:
        raise LogsUnavailable(
            f"the log store did not answer within {timeout:g} s; retry later"
        ) from None


@contextlib.contextmanager
def _explaining_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LogsUnavailable(f"the logs cannot be used: {error}") from error
