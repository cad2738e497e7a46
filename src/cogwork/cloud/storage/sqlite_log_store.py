"""Logs in SQLite files, one for each day on which lines were received.

A day that is over its time is removed as a file. The connections that serve clients cannot delete
or change anything: SQLite refuses it before a statement runs.
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
    LogQuery,
    LogsUnavailable,
    LogUsage,
    Position,
    SearchTooSlow,
    day_of,
)
from cogwork.core.atomic import make_directory
from cogwork.core.workers import Workers

READERS: Final = 4
"""Searches that run at the same time."""
SEARCH_SECONDS: Final = 10.0
"""The time that one search may take."""

_DAY_FILE: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.db")
_WAITING: Final = 1024
_TIMEOUT: Final = 10.0
_MAINTENANCE_TIMEOUT: Final = 600.0
_MAX_OPEN: Final = 8
"""Days that one reader keeps open. Each has a cache of its own."""
_GROWTH: Final = 4
"""Bytes that a line may take, for each of its own: beside the entry, there are the columns, the
index and the write-ahead log."""
_DELETED_AT_ONCE: Final = 10_000
"""Lines. More would need much space for the write-ahead log, which a low disk does not have."""
_STEPS: Final = 10_000
"""Instructions of SQLite between two checks whether a search should go on: about 500 lines."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    part_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    time INTEGER NOT NULL,
    level TEXT NOT NULL,
    logger TEXT NOT NULL,
    message TEXT NOT NULL,
    entry BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS log_by_part ON log (part_id, number);
CREATE TRIGGER IF NOT EXISTS log_is_append_only BEFORE INSERT ON log WHEN NEW.number <> -1
BEGIN SELECT RAISE(ABORT, 'a line would be replaced'); END;
"""
_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
"""What the connections may do once a file is set up. AUTOINCREMENT keeps its own books."""

_CONTAINS: Final = """CASE WHEN length(message) = length(CAST(message AS BLOB))
THEN instr(lower(message), ?) ELSE instr(casefold(message), ?) END > 0"""
"""Whether a message contains a text. ASCII stays within SQLite, because a call of Python for each
line would keep the event loop waiting for the interpreter."""

T = TypeVar("T")


class SqliteLogStore:
    def __init__(
        self,
        directory: Path,
        disk: DiskSpace | None = None,
        search_seconds: float = SEARCH_SECONDS,
    ) -> None:
        """`disk` is the directory's own, unless its owner watches it, too."""
        self._directory = directory
        self._search_seconds = search_seconds
        make_directory(directory)
        self._disk = disk or DiskSpace(directory)
        self._writer = _Connections(directory, 1, creates=True)
        self._readers = _Readers(directory)
        self._write_worker = Workers("logs", waiting=_WAITING)
        self._read_workers = Workers("logs-read", threads=READERS, waiting=_WAITING)
        """A search through a long log does not delay new lines."""
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
            if connection.in_transaction:  # SQLite ends it itself when the disk is full
                connection.execute("ROLLBACK")
            raise

    def _read(self, search: _Search, query: LogQuery, now: int) -> LogPage:
        found: list[tuple[Position, bytes]] = []
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
        """Return the days in which the lines of the query can be, in its order."""
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
            _delete_older(self._directory / f"{oldest}.db", now - RETENTION)
        self._readers.forget_before(oldest)
        for day in [each for each in days if each < oldest]:
            for suffix in ("", "-wal", "-shm"):
                (self._directory / f"{day}.db{suffix}").unlink(missing_ok=True)

    def _days(self) -> list[str]:
        names = (_DAY_FILE.fullmatch(each.name) for each in self._directory.iterdir())
        return [match[1] for match in names if match is not None]


class _Search:
    """A search that another thread may end. It looks up now and then whether it should go on."""

    def __init__(self) -> None:
        self._is_over = threading.Event()

    def end(self) -> None:
        self._is_over.set()

    @contextlib.contextmanager
    def limits(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Interrupt the statements of the block when the search is over."""
        connection.set_progress_handler(self._is_over.is_set, _STEPS)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)


def _read_day(
    connection: sqlite3.Connection, day: str, query: LogQuery, now: int, limit: int
) -> list[tuple[Position, bytes]]:
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
    rows = connection.execute(  # its conditions are ours, its values are parameters
        f"SELECT number, entry FROM log WHERE {where} ORDER BY number {order} LIMIT {limit}",  # noqa: S608
        values,
    )
    return [(Position(day, number), entry) for number, entry in rows]


class _Connections:
    """Open connections by day, used by one thread at a time."""

    def __init__(self, directory: Path, most: int, *, creates: bool) -> None:
        self._directory = directory
        self._most = most
        self._creates = creates
        self._open: dict[str, sqlite3.Connection] = {}

    def open(self, day: str) -> sqlite3.Connection:
        connection = self._open.get(day)
        if connection is None:
            if len(self._open) >= self._most:
                self.forget(min(self._open))
            path = self._directory / f"{day}.db"
            connection = self._open[day] = _connect(path, creates=self._creates)
        return connection

    def find(self, day: str) -> sqlite3.Connection | None:
        """Return None if the day was removed in the meantime, or has no table yet."""
        if day in self._open:
            return self._open[day]
        try:
            connection = self.open(day)
        except sqlite3.OperationalError:
            if (self._directory / f"{day}.db").exists():
                raise
            return None
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'log'").fetchone():
            self.forget(day)
            return None
        return connection

    def forget(self, day: str) -> None:
        if (connection := self._open.pop(day, None)) is not None:
            connection.close()

    def forget_before(self, oldest: str) -> None:
        for day in [each for each in self._open if each < oldest]:
            self.forget(day)

    def close(self) -> None:
        for day in [*self._open]:
            self.forget(day)


class _Readers:
    """Connections for searches in several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._idle: list[_Connections] = []
        self._oldest = ""

    @contextlib.contextmanager
    def take(self) -> Iterator[_Connections]:
        """Yield connections that no other thread uses meanwhile."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is None:
            found = _Connections(self._directory, _MAX_OPEN, creates=False)
        try:
            yield found
        finally:
            with self._lock:
                # A removed file takes space on the disk as long as it is open.
                found.forget_before(self._oldest)
                self._idle.append(found)

    def forget_before(self, oldest: str) -> None:
        """Close the files of earlier days, also those in use when they are returned."""
        with self._lock:
            self._oldest = oldest
            for each in self._idle:
                each.forget_before(oldest)

    def close(self) -> None:
        for each in self._idle:
            each.close()


async def _run(worker: Workers, work: Callable[[], T], timeout: float = _TIMEOUT) -> T:
    try:
        with _explaining_errors():
            async with asyncio.timeout(timeout):
                return await worker.run(work)
    except TimeoutError:
        raise LogsUnavailable(
            f"the logs did not answer within {timeout:g} s; retry later"
        ) from None


@contextlib.contextmanager
def _explaining_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LogsUnavailable(f"the logs cannot be used: {error}") from error


def _connect(path: Path, *, creates: bool) -> sqlite3.Connection:
    if creates:
        path.touch(0o600)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        check_same_thread=False,
        isolation_level=None,
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if creates:
            connection.executescript(_SCHEMA)
        else:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error:
        connection.close()
        raise
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    connection.set_authorizer(_authorize)
    return connection


def _delete_older(path: Path, received_at: int) -> None:
    """Delete lines with a connection of its own, because those that serve cannot."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while connection.execute(
            "DELETE FROM log WHERE number IN "
            "(SELECT number FROM log WHERE received_at <= ? ORDER BY number LIMIT ?)",
            (received_at, _DELETED_AT_ONCE),
        ).rowcount:
            pass


def _authorize(action: int, table: str | None, *_: str | None) -> int:
    is_allowed = action in _ALLOWED and (action != sqlite3.SQLITE_INSERT or table == "log")
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY
