from __future__ import annotations

from dataclasses import replace
from typing import Any

from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.machine.part_cache import PartCache
from cogwork.cloud.storage.records import Rows, Transaction, Value
from cogwork.cloud.storage.select import query_values

PART = LocatedPart(
    id="p1",
    organization_id="acme",
    machine_id="press",
    name="main",
    is_main=True,
    config="{}",
    revision=0,
    created_at=0,
    updated_at=0,
    deleted_at=None,
    restart_requested_at=None,
    last_access_at=1,
    location_id="hall",
    label="press",
)


class Keys:
    """Records of one table."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def read_rows(self, sql: str, *values: Value) -> Rows:
        return Rows(("name",), [(name,) for name in self.names])

    def execute(self, sql: str, *values: Value) -> int:
        raise NotImplementedError


class Builder:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, tx: Transaction, part: LocatedPart) -> bytes:
        self.count += 1
        names = query_values(tx, str, "SELECT name FROM key WHERE part = ?", part.id)
        return f"{part.config} {names}".encode()


def read(cache: PartCache, keys: Keys, **changed: Any) -> str:
    return cache.read(keys, replace(PART, **changed)).decode()


def test_a_configuration_is_built_once_while_nothing_changes() -> None:
    builder = Builder()
    cache = PartCache(builder)
    found = {read(cache, Keys("a"), last_access_at=time) for time in range(5)}
    assert found == {"{} ['a']"}
    assert builder.count == 1


def test_a_change_of_the_part_or_of_what_is_read_builds_another() -> None:
    builder = Builder()
    cache = PartCache(builder)
    assert read(cache, Keys("a")) == "{} ['a']"
    assert read(cache, Keys("a"), config="[]") == "[] ['a']"
    assert read(cache, Keys("a", "b"), config="[]") == "[] ['a', 'b']"
    assert read(cache, Keys("b", "a"), config="[]") == "[] ['b', 'a']"
    assert builder.count == 4


def test_the_oldest_are_dropped_above_the_limit() -> None:
    builder = Builder()
    cache = PartCache(builder, max_bytes=20)
    for part in ("p1", "p2", "p3"):
        read(cache, Keys("a"), id=part)
    read(cache, Keys("a"), id="p3")
    assert builder.count == 3
    read(cache, Keys("a"), id="p1")
    assert builder.count == 4
