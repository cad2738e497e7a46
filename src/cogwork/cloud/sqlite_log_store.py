"""Logs in SQLite files, one for each day on which lines were received.

A day that is over its time is removed as a file. The connections that serve clients cannot delete
or change anything: SQLite refuses it before a statement runs.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from cogwork.cloud.log_store import (
    RETENTION,
    LogLine,
    LogPage,
    LogQuery,
    LogsUnavailable,
    Position,
)
from cogwork.core.workers import Workers

_DAY_FILE: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.db")
_DAY: Final = 24 * 3600 * 1_000_000
_WAITING: Final = 1024
_TIMEOUT: Final = 10.0
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
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connections: dict[str, sqlite3.Connection] = {}
        self._worker = Workers("logs", waiting=_WAITING)

    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        await self._run(lambda: self._append(lines, received_at))

    async def read(self, query: LogQuery, now: int) -> LogPage:
        return await self._run(lambda: self._read(query, now))

    async def expire(self, now: int) -> None:
        await self._run(lambda: self._expire(now))

    async def aclose(self) -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def close() -> None:
            for connection in self._connections.values():
                connection.close()
            loop.call_soon_threadsafe(closed.set)

        self._worker.close_after(close)
        await closed.wait()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await self._worker.run(work)
        except TimeoutError:
            raise LogsUnavailable(
                f"the logs did not answer within {_TIMEOUT:g} s; retry later"
            ) from None
        except sqlite3.Error as error:
            raise LogsUnavailable(f"the logs cannot be used: {error}") from error

    def _append(self, lines: Sequence[LogLine], received_at: int) -> None:
        connection = self._open(_day_of(received_at))
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
            conditions.append(("instr(lower(message), ?) > 0", query.text.lower()))
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
        rows = self._open(day).execute(  # its conditions are ours, its values are parameters
            f"SELECT number, entry FROM log WHERE {where} ORDER BY number {order} LIMIT {limit}",  # noqa: S608
            (*(value for _, value in conditions), *sorted(query.levels)),
        )
        return [(Position(day, number), entry) for number, entry in rows]

    def _expire(self, now: int) -> None:
        oldest = _day_of(now - RETENTION)
        for day in [each for each in self._days() if each < oldest]:
            if (connection := self._connections.pop(day, None)) is not None:
                connection.close()
            for suffix in ("", "-wal", "-shm"):
                (self._directory / f"{day}.db{suffix}").unlink(missing_ok=True)

    def _days(self) -> list[str]:
        names = (_DAY_FILE.fullmatch(each.name) for each in self._directory.iterdir())
        return [match[1] for match in names if match is not None]

    def _open(self, day: str) -> sqlite3.Connection:
        connection = self._connections.get(day)
        if connection is None:
            if len(self._connections) >= _MAX_OPEN:
                self._connections.pop(min(self._connections)).close()
            connection = self._connections[day] = _connect(self._directory / f"{day}.db")
        return connection


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
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _day_of(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d")
