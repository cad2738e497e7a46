"""The access list that a machine keeps: asked for, ended, stored, and expired."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.waiting import run_others

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    encode_access_list,
    index_entries,
    parse_access_list,
)
from cogwork.auth.roles import Role
from cogwork.core.clock import ManualClock
from cogwork.uplink.access_link import AccessLink
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable, MethodMissing

START, DAY = 1_800_000_000.0, 86_400.0


def access_list(*keys: str, issued_at: float = START, days: float = 30) -> AccessList:
    entries = [
        AccessEntry(Principal(PrincipalKind.KEY, key), Role.OWNER, bytes(32)) for key in keys
    ]
    revision = ",".join(keys) or "none"
    until = issued_at + days * DAY
    return AccessList("part", index_entries(entries), {"keys": []}, revision, issued_at, until)


def fail_on_full_disk(_: str) -> None:
    raise OSError(28, "No space left on device")


class Bench:
    """A machine, and its cloud."""

    def __init__(self, directory: Path, clock: ManualClock) -> None:
        self.clock = clock
        self.file = directory / "joined" / "access.json"
        self.cloud: AccessList | None = None
        self.asked = 0
        self.used: list[str] = []
        self.link = AccessLink(self.file, cast("CloudClient", self), "part", clock, self._use)

    async def call(self, *_: Any) -> StringValue:
        self.asked += 1
        if self.cloud is None:
            raise CloudUnavailable("it is away")
        return StringValue(value=encode_access_list(self.cloud))

    async def ask(self) -> bool:
        asking = asyncio.create_task(self.link.ask())
        await self.clock.advance(1)
        return await asking

    def list_stored(self) -> list[str]:
        return [key for _, key in parse_access_list(self.file.read_bytes()).entries]

    def _use(self, access: AccessList) -> None:
        self.used = [key for _, key in access.entries]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, ManualClock(START))


async def test_a_client_that_is_not_listed_makes_the_machine_ask(bench: Bench) -> None:
    bench.cloud = access_list("a")
    await bench.link.refresh(1)
    bench.cloud = access_list("a", "b")
    assert await bench.ask()
    assert bench.used == ["a", "b"]


async def test_strangers_make_the_machine_ask_ever_more_rarely(bench: Bench) -> None:
    bench.cloud = access_list("a")
    await bench.link.refresh(1)
    for _ in range(600):
        assert not await bench.ask()
    assert bench.asked < 20
    bench.cloud = access_list("a", "b")
    await bench.clock.advance(60)
    assert await bench.ask()


async def test_what_has_ended_stays_so_after_a_restart_without_the_cloud(bench: Bench) -> None:
    bench.cloud = access_list("a", "b")
    await bench.link.refresh(1)
    assert bench.list_stored() == ["a", "b"]
    bench.cloud = None
    bench.link.end(["a"])
    assert bench.used == ["b"]
    storing = bench.link._storing
    assert storing is not None
    await storing
    assert bench.list_stored() == ["b"]


async def test_what_ends_while_another_end_is_stored_is_stored_too(bench: Bench) -> None:
    bench.cloud = access_list("a", "b", "c")
    await bench.link.refresh(1)
    bench.link.end(["a"])
    await run_others()  # it is being stored
    bench.link.end(["b"])
    storing = bench.link._storing
    assert storing is not None
    await storing
    assert bench.list_stored() == ["c"]


async def test_a_list_that_cannot_be_stored_leaves_no_older_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.cloud = access_list("a", "b")
    await bench.link.refresh(1)
    monkeypatch.setattr(bench.link, "_write", fail_on_full_disk)
    # One that is only confirmed says nothing else than the former.
    bench.cloud = access_list("a", "b", issued_at=START + 2 * DAY)
    await bench.link.refresh(1)
    assert bench.list_stored() == ["a", "b"]
    bench.cloud = access_list("b")
    await bench.link.refresh(1)
    assert not bench.file.exists()


async def test_a_stored_list_expires_on_a_machine_without_a_clock(
    bench: Bench, tmp_path: Path
) -> None:
    bench.cloud = access_list("a", days=1)
    await bench.link.refresh(1)
    restarted = Bench(tmp_path, ManualClock(0.0))
    await restarted.link.use_stored()
    assert restarted.used == ["a"]
    running = asyncio.create_task(restarted.link.run())
    await restarted.clock.advance(0.9 * DAY)
    assert restarted.used == ["a"]
    await restarted.clock.advance(0.2 * DAY)
    assert restarted.used == []
    running.cancel()


async def test_the_folder_belongs_to_the_user_only(bench: Bench) -> None:
    bench.cloud = access_list("a")
    await bench.link.refresh(1)
    assert bench.file.parent.stat().st_mode & 0o777 == 0o700
    assert bench.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "stored", ["", "{}", encode_access_list(replace(access_list("a"), part="x"))]
)
async def test_a_stored_list_that_is_not_of_this_machine_is_not_used(
    bench: Bench, stored: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench.file.parent.mkdir()
    bench.file.write_text(stored)
    await bench.link.use_stored()
    assert (bench.used, bench.link.is_known) == ([], False)
    assert "cannot be used" in caplog.text


async def test_a_list_of_another_machine_is_refused(bench: Bench) -> None:
    bench.cloud = access_list("a")
    await bench.link.refresh(1)
    bench.cloud = replace(access_list("b"), part="another")
    with pytest.raises(CloudUnavailable, match="the list belongs to another part"):
        await bench.link.refresh(1)
    assert (bench.used, bench.list_stored()) == (["a"], ["a"])


async def test_a_cloud_that_makes_no_lists_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def miss(*_: Any) -> StringValue:
        raise MethodMissing("what?")

    monkeypatch.setattr(bench, "call", miss)
    assert not await bench.link.refresh(1)
    assert (bench.link.is_known, bench.link.revision, bench.file.exists()) == (False, "", False)


async def test_a_list_that_is_only_confirmed_is_stored_once_a_day(bench: Bench) -> None:
    bench.cloud = access_list("a")
    await bench.link.refresh(1)
    for seconds, is_stored in ((DAY - 1, False), (DAY, True)):
        bench.cloud = access_list("a", issued_at=START + seconds)
        assert not await bench.link.refresh(1)
        stored = parse_access_list(bench.file.read_bytes())
        assert (stored.issued_at == START + seconds) is is_stored
