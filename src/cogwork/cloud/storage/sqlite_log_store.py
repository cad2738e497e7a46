"""Logs in SQLite files, one for each day on which lines were received.

A day that is over its time is removed as a file. The connections that serve clients cannot delete
or change anything: SQLite refuses it before a statement runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from cogwork.cloud.storage.log_store import (
    RETENTION,
    LogLine,
    LogPage,
    LogQuery,
    LogsUnavailable,
    LogUsage,
    Position,
)
from cogwork.core.atomic import make_directory
from cogwork.core.workers import Workers

_DAY_FILE: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.db")
_DAY: Final = 24 * 3600 * 1_000_000
_WAITING: Final = 1024
_TIMEOUT: Final = 10.0
_MEASURE_TIMEOUT: Final = 600.0
_MAX_OPEN: Final = 32
"""Days are at most 31 at a time."""

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

T = TypeVar("T")


class SqliteLogStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        make_directory(directory)
        self._writer = _Connections(directory, 1)
        self._reader = _Connections(directory, _MAX_OPEN)
        self._write_worker = Workers("logs", waiting=_WAITING)
        self._read_worker = Workers("logs-read", waiting=_WAITING)
        """A search through a long log does not delay new lines."""

    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        await _run(self._write_worker, lambda: self._append(lines, received_at))

    async def read(self, query: LogQuery, now: int) -> LogPage:
        return await _run(self._read_worker, lambda: self._read(query, now))

    async def expire(self, now: int) -> None:
        await _run(self._read_worker, lambda: self._expire(now))

    async def measure(self, now: int) -> Sequence[LogUsage]:
        return await _run(self._read_worker, lambda: self._measure(now), _MEASURE_TIMEOUT)

    async def aclose(self) -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def close() -> None:
            self._writer.close()
            self._reader.close()
            loop.call_soon_threadsafe(closed.set)

        self._read_worker.close_after(lambda: self._write_worker.close_after(close))
        await closed.wait()

    def _append(self, lines: Sequence[LogLine], received_at: int) -> None:
        connection = self._writer.open(_day_of(received_at))
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(
                "INSERT INTO log (part_id, received_at, time, level, logger, message, entry) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((each.part_id, received_at, *each[1:]) for each in lines),
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _read(self, query: LogQuery, now: int) -> LogPage:
        found: list[tuple[Position, bytes]] = []
        for day in self._days_of(query, now):
            found += self._read_day(day, query, now, query.limit + 1 - len(found))
            if len(found) > query.limit:
                break
        shown = found[: query.limit]
        return LogPage(
            [entry for _, entry in shown], shown[-1][0] if len(found) > query.limit else None
        )

    def _days_of(self, query: LogQuery, now: int) -> Iterator[str]:
        """Return the days in which the lines of the query can be, in its order."""
        oldest = _day_of(now - RETENTION)
        after = query.after.day if query.after is not None else None
        for day in sorted(self._days(), reverse=not query.oldest_first):
            is_before = after is not None and (day < after if query.oldest_first else day > after)
            if day >= oldest and not is_before:
                yield day

    def _read_day(
        self, day: str, query: LogQuery, now: int, limit: int
    ) -> list[tuple[Position, bytes]]:
        conditions: list[tuple[str, str | int]] = [
            ("part_id = ?", query.part_id),
            ("received_at > ?", now - RETENTION),
        ]
        if query.after is not None and query.after.day == day:
            sign = ">" if query.oldest_first else "<"
            conditions.append((f"number {sign} ?", query.after.number))
        if query.text:
            conditions.append(("instr(casefold(message), ?) > 0", query.text.casefold()))
        if query.logger:
            conditions.append(("instr(logger, ?) = 1", query.logger))
        if query.start is not None:
            conditions.append(("time >= ?", query.start))
        if query.end is not None:
            conditions.append(("time < ?", query.end))
        where = " AND ".join(condition for condition, _ in conditions)
        if query.levels:
            where += f" AND level IN ({', '.join('?' * len(query.levels))})"
        order = "ASC" if query.oldest_first else "DESC"
        rows = self._reader.open(day).execute(  # its conditions are ours, its values are parameters
            f"SELECT number, entry FROM log WHERE {where} ORDER BY number {order} LIMIT {limit}",  # noqa: S608
            (*(value for _, value in conditions), *sorted(query.levels)),
        )
        return [(Position(day, number), entry) for number, entry in rows]

    def _measure(self, now: int) -> list[LogUsage]:
        oldest = _day_of(now - RETENTION)
        return [
            LogUsage(part, day, lines, size)
            for day in sorted(each for each in self._days() if each >= oldest)
            for part, lines, size in self._reader.open(day).execute(
                "SELECT part_id, COUNT(*), SUM(LENGTH(entry)) FROM log WHERE received_at > ? "
                "GROUP BY part_id ORDER BY part_id",
                (now - RETENTION,),
            )
        ]

    def _expire(self, now: int) -> None:
        oldest = _day_of(now - RETENTION)
        days = self._days()
        if oldest in days:
            _delete_older(self._directory / f"{oldest}.db", now - RETENTION)
        for day in [each for each in days if each < oldest]:
            self._reader.forget(day)
            for suffix in ("", "-wal", "-shm"):
                (self._directory / f"{day}.db{suffix}").unlink(missing_ok=True)

    def _days(self) -> list[str]:
        names = (_DAY_FILE.fullmatch(each.name) for each in self._directory.iterdir())
        return [match[1] for match in names if match is not None]


class _Connections:
    """The open connections of one thread, by day."""

    def __init__(self, directory: Path, most: int) -> None:
        self._directory = directory
        self._most = most
        self._open: dict[str, sqlite3.Connection] = {}

    def open(self, day: str) -> sqlite3.Connection:
        connection = self._open.get(day)
        if connection is None:
            if len(self._open) >= self._most:
                self.forget(min(self._open))
            connection = self._open[day] = _connect(self._directory / f"{day}.db")
        return connection

    def forget(self, day: str) -> None:
        if (connection := self._open.pop(day, None)) is not None:
            connection.close()

    def close(self) -> None:
        for day in [*self._open]:
            self.forget(day)


async def _run(worker: Workers, work: Callable[[], T], timeout: float = _TIMEOUT) -> T:
    try:
        async with asyncio.timeout(timeout):
            return await worker.run(work)
    except TimeoutError:
        raise LogsUnavailable(
            f"the logs did not answer within {timeout:g} s; retry later"
        ) from None
    except sqlite3.Error as error:
        raise LogsUnavailable(f"the logs cannot be used: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    path.touch(0o600)
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    connection.set_authorizer(_authorize)
    return connection


def _delete_older(path: Path, received_at: int) -> None:
    """Delete lines with a connection of its own, because those that serve cannot."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM log WHERE received_at <= ?", (received_at,))


def _authorize(action: int, table: str | None, *_: str | None) -> int:
    is_allowed = action in _ALLOWED and (action != sqlite3.SQLITE_INSERT or table == "log")
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _day_of(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d")
