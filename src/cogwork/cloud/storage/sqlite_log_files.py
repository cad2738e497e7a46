"""The SQLite files of the log, one for each day, and their connections.

Connections that serve clients cannot delete or change lines: SQLite rejects these statements before
they run.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MAX_OPEN: Final = 8
"""Maximum number of days that one reader keeps open, because each open day has a cache."""
_DELETED_AT_ONCE: Final = 10_000
"""Lines per delete. More would need a large write-ahead log, which may not fit on a low disk."""

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
"""Operations that SQLite allows after the setup of a file; inserts only into the table `log`."""


class LogConnections:
    """Open connections by day. Only one thread at a time uses them."""

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
        """Return the connection of a day; None if the day was removed or has no table yet."""
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


class LogReaders:
    """Connections for searches in several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._idle: list[LogConnections] = []
        self._oldest = ""

    @contextlib.contextmanager
    def take(self) -> Iterator[LogConnections]:
        """Yield connections for exclusive use by the block."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is None:
            found = LogConnections(self._directory, _MAX_OPEN, creates=False)
        try:
            yield found
        finally:
            with self._lock:
                # Close removed files, because they occupy disk space until they are closed.
                found.forget_before(self._oldest)
                self._idle.append(found)

    def forget_before(self, oldest: str) -> None:
        """Close the files of earlier days. Files in use are closed when they are returned."""
        with self._lock:
            self._oldest = oldest
            for each in self._idle:
                each.forget_before(oldest)

    def close(self) -> None:
        for each in self._idle:
            each.close()


def delete_older(path: Path, received_at: int) -> None:
    """Delete old lines on a separate connection, because all others must not delete lines."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while connection.execute(
            "DELETE FROM log WHERE number IN "
            "(SELECT number FROM log WHERE received_at <= ? ORDER BY number LIMIT ?)",
            (received_at, _DELETED_AT_ONCE),
        ).rowcount:
            pass


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


def _authorize(action: int, table: str | None, *_: str | None) -> int:
    is_allowed = action in _ALLOWED and (action != sqlite3.SQLITE_INSERT or table == "log")
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY
