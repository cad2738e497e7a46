"""Records in one SQLite file, for a cloud with a single process."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from cogwork.cloud.storage.ballast import Ballast
from cogwork.cloud.storage.records import (
    BrokenReference,
    DuplicateRecord,
    RecordsUnavailable,
    Rows,
    Transaction,
    Value,
)
from cogwork.cloud.storage.schema import MIGRATIONS
from cogwork.core.workers import Workers

_READERS: Final = 2
_WAITING: Final = 4096
"""Maximum number of waiting transactions. More are refused, so that memory stays bounded."""
_TIMEOUT: Final = 10.0
"""Timeout of a transaction in seconds, including the time in the queue."""

_DUPLICATE: Final = (
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY_CODE: Final = 0xFF
"""Mask for the primary code in an SQLite error code, which may include details."""

T = TypeVar("T")


class SqliteRecords:
    """Records in SQLite. One thread writes, and others read concurrently (write-ahead log)."""

    def __init__(
        self, path: Path, ballast: Ballast | None = None, *, migrates: bool = True
    ) -> None:
        """Open an existing file, which may be empty. Raise RecordsUnavailable.

        The ballast is released when the disk is full. `migrates`: see `write_records`.
        """
        self._path = path
        self._ballast = ballast
        self._writer = _open(path, migrates=migrates)
        self._write_worker = Workers("records", waiting=_WAITING)
        self._read_workers = Workers("records-read", threads=_READERS, waiting=_WAITING)
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await _within_timeout(self._read_workers, self._read, work)

    async def write(
        self, work: Callable[[Transaction], T], then: Callable[[T], None] | None = None
    ) -> T:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()

        def run(work: Callable[[Transaction], T]) -> T:
            result = self._write(work)
            if then is not None:
                with contextlib.suppress(RuntimeError):  # raised if the loop is already closed
                    loop.call_soon_threadsafe(then, result, context=context)
            return result

        return await _within_timeout(self._write_worker, run, work)

    async def aclose(self) -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def close() -> None:
            for connection in (*self._open_readers, self._writer):
                connection.close()
            loop.call_soon_threadsafe(closed.set)

        self._read_workers.close_after(lambda: self._write_worker.close_after(close))
        await closed.wait()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            with _explain_faults(self._path):
                connection = self._readers.connection = _connect(self._path)
                connection.execute("PRAGMA query_only = ON")
            self._open_readers.append(connection)
        return _transact(connection, "BEGIN", work, self._path)

    def _write(self, work: Callable[[Transaction], T]) -> T:
        try:
            return _transact(self._writer, "BEGIN IMMEDIATE", work, self._path)
        except RecordsUnavailable as error:
            if not _is_disk_full(error) or self._ballast is None or not self._ballast.release():
                raise
        return _transact(self._writer, "BEGIN IMMEDIATE", work, self._path)


def write_records(path: Path, work: Callable[[Transaction], T], *, migrates: bool = True) -> T:
    """Run a command's work as one transaction, without a timeout.

    If `migrates` is True, update the file to the current schema. The caller must have locked the
    directory, because an older version of the cloud may use the file. If it is False, refuse a file
    with another schema. Raise RecordsUnavailable.
    """
    with contextlib.closing(_open(path, migrates=migrates)) as connection:
        return _transact(connection, "BEGIN IMMEDIATE", work, path)


def read_records(path: Path, work: Callable[[Transaction], T]) -> T:
    """Run a command's read-only work. Raise RecordsUnavailable if the schema is not current."""
    with contextlib.closing(_open(path, migrates=False)) as connection:
        connection.execute("PRAGMA query_only = ON")
        return _transact(connection, "BEGIN", work, path)


def copy_records(source: Path, target: Path) -> None:
    """Copy a file of records. A cloud may write to it meanwhile. Raise RecordsUnavailable."""
    with (
        _explain_faults(source),
        contextlib.closing(sqlite3.connect(_uri(source, "ro"), uri=True)) as connection,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        connection.backup(copy)
        # End write-ahead mode, so that the copy is a single file.
        copy.execute("PRAGMA journal_mode = DELETE")


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_rows(self, sql: str, *values: Value) -> Rows:
        cursor = self._connection.execute(sql, values)
        return Rows(tuple([each[0] for each in cursor.description]), cursor.fetchall())

    def execute(self, sql: str, *values: Value) -> int:
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode in _DUPLICATE:
                raise DuplicateRecord(f"the record already exists: {error}") from error
            if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                raise BrokenReference(
                    "the record refers to a missing record, or other records refer to it"
                ) from error
            raise


async def _within_timeout(
    workers: Workers,
    run: Callable[[Callable[[Transaction], T]], T],
    work: Callable[[Transaction], T],
) -> T:
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await workers.run(run, work)
    except TimeoutError:
        raise RecordsUnavailable(
            f"the database of the records did not answer within {_TIMEOUT:g} s; retry later"
        ) from None


def _open(path: Path, *, migrates: bool) -> sqlite3.Connection:
    """Open an existing file, and check or migrate its schema. Raise RecordsUnavailable."""
    with _explain_faults(path), contextlib.ExitStack() as stack:
        connection = stack.enter_context(contextlib.closing(_connect(path)))
        version = _read_version(connection, path)
        if migrates:
            _migrate(connection, version, path)
        elif version < len(MIGRATIONS):
            raise RecordsUnavailable(
                f"{path} was written by an older version of cogwork-cloud; upgrade it by "
                "starting the cloud once with: cogwork-cloud serve"
            )
        stack.pop_all()
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    # Mode `rw` raises an error for a missing file; the default would create an empty file.
    connection = sqlite3.connect(
        _uri(path, "rw"), uri=True, check_same_thread=False, isolation_level=None
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL lets completed transactions survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _uri(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?mode={mode}"


def _transact(
    connection: sqlite3.Connection, begin: str, work: Callable[[Transaction], T], path: Path
) -> T:
    with _explain_faults(path):
        connection.execute(begin)
        try:
            result = work(_SqliteTransaction(connection))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return result


@contextlib.contextmanager
def _explain_faults(path: Path) -> Iterator[None]:
    """Convert faults of the file to RecordsUnavailable, but not mistakes in a statement."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _DAMAGED:
            raise RecordsUnavailable(
                f"{path.name} is damaged ({error}); restore it from a backup with: "
                "cogwork-cloud restore FILE"
            ) from error
        raise RecordsUnavailable(f"the records cannot be used: {error}") from error


def _is_disk_full(error: RecordsUnavailable) -> bool:
    cause = error.__cause__
    return (
        isinstance(cause, sqlite3.OperationalError)
        and cause.sqlite_errorcode == sqlite3.SQLITE_FULL
    )


def _read_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the number of migrations that were applied to the file."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise RecordsUnavailable(
            f"{path} was written by a newer version of cogwork-cloud; install that version"
        )
    return int(version)


def _migrate(connection: sqlite3.Connection, version: int, path: Path) -> None:
    """Apply the missing migrations, each in one transaction."""
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        if isinstance(step, str):
            connection.executescript(f"BEGIN;{step};PRAGMA user_version = {number};COMMIT;")
        else:
            _transact(connection, "BEGIN IMMEDIATE", partial(_apply, step, number), path)


def _apply(step: Callable[[Transaction], None], number: int, tx: Transaction) -> None:
    step(tx)
    tx.execute(f"PRAGMA user_version = {number}")
