"""The contract of the cloud's log store, for every engine."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.waiting import pass_time

from cogwork.cloud.storage.disk_space import DiskLow, DiskSpace, Space
from cogwork.cloud.storage.log_store import (
    LogLine,
    LogQuery,
    LogStore,
    LogsUnavailable,
    LogUsage,
    SearchTooSlow,
)
from cogwork.cloud.storage.sqlite_log_store import READERS, SqliteLogStore

SECOND = 1_000_000
DAY = 24 * 3600 * SECOND
NOW = 1_800_000_000 * SECOND
DEADLINE = 120.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LogStore]:
    found = SqliteLogStore(tmp_path / "logs")
    yield found
    await found.aclose()


def line(message: str, part: str = "p", level: str = "info", logger: str = "rdk") -> LogLine:
    return LogLine(part, NOW, level, logger, message, message.encode())


async def read(store: LogStore, query: LogQuery, now: int = NOW) -> list[str]:
    return [entry.decode() for entry in (await store.read(query, now)).entries]


async def test_lines_are_read_newest_first(store: LogStore) -> None:
    await store.append([line("one"), line("two")], NOW - DAY)
    await store.append([line("three"), line("of another", part="q")], NOW)
    assert await read(store, LogQuery("p")) == ["three", "two", "one"]
    assert await read(store, LogQuery("p", oldest_first=True)) == ["one", "two", "three"]
    assert await read(store, LogQuery("q")) == ["of another"]
    assert await read(store, LogQuery("unknown")) == []


@pytest.mark.parametrize("oldest_first", [False, True])
async def test_pages_contain_every_line_once(store: LogStore, oldest_first: bool) -> None:
    for day in range(5):
        await store.append([line(f"{day}.{n}") for n in range(7)], NOW - (5 - day) * DAY)
    seen, query = [], LogQuery("p", limit=3, oldest_first=oldest_first)
    while True:
        page = await store.read(query, NOW)
        assert page.entries
        seen += [entry.decode() for entry in page.entries]
        if page.last is None:
            break
        query = LogQuery("p", limit=3, oldest_first=oldest_first, after=page.last)
    expected = [f"{day}.{n}" for day in range(5) for n in range(7)]
    assert seen == (expected if oldest_first else expected[::-1])


async def test_filters(store: LogStore) -> None:
    await store.append(
        [
            line("Motor stalled", level="error", logger="rdk.motor"),
            line("100% _done_", level="info", logger="rdk"),
            LogLine("p", NOW - 60 * SECOND, "warn", "acme", "earlier", b"earlier"),
        ],
        NOW,
    )
    assert await read(store, LogQuery("p", text="STALLED")) == ["Motor stalled"]
    await store.append([line("ÄRGER mit Straße", part="q")], NOW)
    for text in ("ärger MIT STRASSE", "strasse", "STRASSE", "MIT", "Straße"):
        assert await read(store, LogQuery("q", text=text)) == ["ÄRGER mit Straße"]
    assert await read(store, LogQuery("p", text="%")) == ["100% _done_"]
    assert await read(store, LogQuery("p", levels=frozenset({"warn", "error"}))) == [
        "earlier",
        "Motor stalled",
    ]
    assert await read(store, LogQuery("p", logger="rdk.")) == ["Motor stalled"]
    assert await read(store, LogQuery("p", start=NOW)) == ["100% _done_", "Motor stalled"]
    assert await read(store, LogQuery("p", end=NOW)) == ["earlier"]


async def test_lines_are_visible_for_exactly_30_days(store: LogStore) -> None:
    await store.append([line("old")], NOW)
    for after, expected in ((30 * DAY - 1, ["old"]), (30 * DAY, [])):
        await store.expire(NOW + after)
        assert await read(store, LogQuery("p"), NOW + after) == expected


async def test_lines_of_the_oldest_day_are_removed_one_by_one(tmp_path: Path) -> None:
    """What is not visible any more is not stored either."""
    store = SqliteLogStore(tmp_path)
    start = NOW - NOW % DAY
    for hour in range(24):
        await store.append([line(f"hour {hour}")], start + hour * 3600 * SECOND)
    for hour in range(24):
        now = start + 30 * DAY + hour * 3600 * SECOND
        await store.expire(now)
        (file,) = tmp_path.glob("*.db")
        assert count_lines(file) == 23 - hour
        visible = await read(store, LogQuery("p", limit=1000), now)
        assert visible == [f"hour {each}" for each in range(23, hour, -1)]
    await store.expire(start + 31 * DAY)
    assert [*tmp_path.iterdir()] == []
    await store.aclose()


def count_lines(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM log").fetchone()
    return int(count)


async def test_stored_lines_are_measured(store: LogStore) -> None:
    await store.append([line("12345"), line("123", part="q")], NOW - 30 * DAY)
    await store.append([line("1234"), line("123", part="q"), line("12")], NOW)
    assert await store.measure(NOW) == [
        LogUsage("p", day_of(NOW), 2, 6),
        LogUsage("q", day_of(NOW), 1, 3),
    ]


def day_of(now: int) -> str:
    return datetime.fromtimestamp(now // SECOND, UTC).date().isoformat()


async def test_60_days_of_logs_are_stored_for_at_most_31(tmp_path: Path) -> None:
    store = SqliteLogStore(tmp_path)
    for day in range(60):
        now = NOW + day * DAY
        await store.append([line(f"day {day}")], now)
        await store.expire(now)
        visible = await read(store, LogQuery("p", limit=1000), now)
        assert visible == [f"day {each}" for each in range(day, max(-1, day - 30), -1)]
        assert len([*tmp_path.glob("*.db")]) <= 31
    await store.aclose()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM log",
        "UPDATE log SET message = ''",
        "DROP TABLE log",
        "ALTER TABLE log RENAME TO x",
        "REPLACE INTO log (number, part_id, received_at, time, level, logger, message, entry) "
        "VALUES (1, '', 0, 0, '', '', '', '')",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "ATTACH DATABASE ':memory:' AS other",
        "CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log; END",
        "VACUUM",
        "DROP TRIGGER log_is_append_only",
        "DROP INDEX log_by_part",
        "INSERT OR REPLACE INTO log (number, part_id, received_at, time, level, logger, message, "
        "entry) VALUES (1, '', 0, 0, '', '', '', '')",
        "INSERT INTO log SELECT * FROM log WHERE true ON CONFLICT DO UPDATE SET entry = ''",
        "INSERT INTO log (number, part_id, received_at, time, level, logger, message, entry) "
        "VALUES (9223372036854775807, '', 0, 0, '', '', '', '')",
        "INSERT INTO sqlite_sequence VALUES ('log', 9223372036854775807)",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "DELETE FROM sqlite_master",
        "REINDEX",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "CREATE TABLE other (x)",
        "CREATE TEMP TABLE other (x)",
        "SELECT load_extension('x')",
        "WITH old AS (SELECT 1) DELETE FROM log",
    ],
)
async def test_serving_connection_cannot_change_lines(tmp_path: Path, sql: str) -> None:
    store = SqliteLogStore(tmp_path)
    await store.append([line("kept")], NOW)
    assert await read(store, LogQuery("p")) == ["kept"]
    (reader,) = store._readers._idle
    for connections in (store._writer, reader):
        (connection,) = connections._open.values()
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(sql)
    assert await read(store, LogQuery("p")) == ["kept"]
    await store.aclose()


async def test_damaged_file_is_explained(tmp_path: Path) -> None:
    store = SqliteLogStore(tmp_path)
    await store.append([line("one")], NOW - DAY)
    await store.aclose()
    (file,) = tmp_path.glob("*.db")
    file.write_bytes(b"not a database" * 1000)
    store = SqliteLogStore(tmp_path)
    with pytest.raises(LogsUnavailable, match="cannot be used"):
        await store.read(LogQuery("p"), NOW)
    await store.append([line("two")], NOW)
    await store.aclose()


LONG = "ä" * 16_000
SLOW = LogQuery("slow", text="not in there")
"""A search through everything that `fill` wrote."""


async def fill(store: LogStore) -> None:
    """Write a log that takes long to search."""
    for _ in range(6):
        await store.append([line(LONG, part="slow") for _ in range(100)], NOW)
    await store.append([line("found")], NOW)


@pytest.fixture
async def patient_store(tmp_path: Path) -> AsyncIterator[LogStore]:
    """A store whose searches may take long, because other tests may run beside this one."""
    found = SqliteLogStore(tmp_path / "patient", search_seconds=DEADLINE)
    yield found
    await found.aclose()


async def test_search_does_not_wait_for_another(patient_store: LogStore) -> None:
    store = patient_store
    await fill(store)
    slow = [asyncio.create_task(store.read(SLOW, NOW)) for _ in range(READERS - 1)]
    assert await read(store, LogQuery("p")) == ["found"]
    assert not any(task.done() for task in slow)
    await store.append([line("more")], NOW)
    assert await read(store, LogQuery("p")) == ["more", "found"]
    pages = await asyncio.gather(*slow)
    assert [[*page.entries] for page in pages] == [[]] * len(slow)


async def test_search_ends_with_its_caller(patient_store: LogStore) -> None:
    store = patient_store
    await fill(store)
    began = time.monotonic()
    await store.read(SLOW, NOW)
    alone = time.monotonic() - began
    slow = [asyncio.create_task(store.read(SLOW, NOW)) for _ in range(10 * READERS)]
    await pass_time(alone / 10)
    for task in slow:
        task.cancel()
    began = time.monotonic()
    await asyncio.gather(*slow, return_exceptions=True)
    assert await read(store, LogQuery("p")) == ["found"]
    assert time.monotonic() - began < 10 * alone
    assert [*(await store.read(SLOW, NOW)).entries] == [], "the connection works afterwards"


async def test_search_has_a_budget(tmp_path: Path) -> None:
    store = SqliteLogStore(tmp_path, search_seconds=0.05)
    await fill(store)
    for _ in range(2 * READERS):
        with pytest.raises(SearchTooSlow, match=r"took longer than 0\.05 s; search a shorter time"):
            await store.read(SLOW, NOW)
    await store.aclose()


async def test_files_of_removed_days_are_closed(tmp_path: Path) -> None:
    """A file takes space on the disk as long as it is open."""
    store = SqliteLogStore(tmp_path)
    await store.append([line("old")], NOW)
    await store.append([line("new")], NOW + 31 * DAY)
    await asyncio.gather(*(store.read(LogQuery("p"), NOW) for _ in range(READERS)))
    await store.expire(NOW + 31 * DAY)
    assert len([*tmp_path.glob("*.db")]) == 1
    for each in store._readers._idle:
        assert day_of(NOW) not in each._open
    assert await read(store, LogQuery("p"), NOW + 31 * DAY) == ["new"]
    await store.aclose()


async def test_many_lines_of_the_oldest_day_are_removed(tmp_path: Path) -> None:
    store = SqliteLogStore(tmp_path)
    start = NOW - NOW % DAY
    for _ in range(25):
        await store.append([line("old")] * 1000, start)
    await store.append([line("kept")], start + 2 * SECOND)
    await store.expire(start + 30 * DAY + SECOND)
    (file,) = tmp_path.glob("*.db")
    assert count_lines(file) == 1
    await store.aclose()


async def test_lines_leave_the_reserve_of_the_disk(tmp_path: Path) -> None:
    space = Space(1 << 30, 1 << 29)
    store = SqliteLogStore(tmp_path / "logs", DiskSpace(tmp_path, lambda _: space))
    await store.append([line("stored")], NOW)
    space = Space(1 << 30, 100 << 20)
    with pytest.raises(DiskLow, match="reserved for records"):
        await store.append([line("refused")], NOW)
    assert await read(store, LogQuery("p")) == ["stored"]
    space = Space(1 << 30, 1 << 29)
    await store.append([line("again")], NOW)
    assert await read(store, LogQuery("p")) == ["again", "stored"]
    await store.aclose()
