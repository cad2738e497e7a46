"""A login that fails because of the cloud is never a refusal, at which machines give up."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.cloud.cloud_at_rest import add_machine, identify, new_cloud, open_plane

from cogwork.auth.errors import Unauthenticated
from cogwork.cloud.commands.backup import back_up, renew_root_key, restore
from cogwork.cloud.commands.create_cloud import NewCloud
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.identity.cloud_record import read_cloud
from cogwork.cloud.storage.records import RecordsUnavailable, Transaction
from cogwork.cloud.storage.select import query_values
from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError

DAY = 86_400.0
START = 1_800_000_000.0
UNKNOWN = "6b1ee3d5-8a8f-4d4c-93d6-2f8f0c8f7b11"


@dataclass
class Fleet:
    directory: CloudDirectory
    clock: ManualClock
    owner: tuple[str, str]
    part: str
    secret: str


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[CloudDirectory, NewCloud]:
    return new_cloud(tmp_path_factory.mktemp("cloud") / "cloud", ManualClock(START))


@pytest.fixture
async def fleet(template: tuple[CloudDirectory, NewCloud], tmp_path: Path) -> Fleet:
    made, new = template
    directory = CloudDirectory(Path(shutil.copytree(made.path, tmp_path / "cloud")))
    clock = ManualClock(START)
    async with open_plane(directory, clock) as plane:
        part, secret = await add_machine(plane, new.key_id)
    return Fleet(directory, clock, (new.key_id, new.key), part, secret)


async def status_of(plane: ControlPlane, part: str, secret: str) -> str:
    """Return how a login of a part ends."""
    try:
        await plane.login.log_in(part, "robot-secret", secret, "::1")
    except CogworkError as error:
        return error.status
    return "OK"


async def test_only_what_is_proven_wrong_is_refused(fleet: Fleet) -> None:
    async with open_plane(fleet.directory, fleet.clock) as plane:
        assert await status_of(plane, fleet.part, fleet.secret) == "OK"
        assert await status_of(plane, fleet.part, "wrong") == "UNAUTHENTICATED"
        assert await status_of(plane, UNKNOWN, "wrong") == "UNAVAILABLE"
        records = plane.context.records
        await records.write(
            lambda tx: tx.execute("DELETE FROM secret WHERE owner_id = ?", fleet.part)
        )
        assert await status_of(plane, fleet.part, fleet.secret) == "UNAVAILABLE"
        await records.write(
            lambda tx: tx.execute("UPDATE part SET deleted_at = 1 WHERE id = ?", fleet.part)
        )
        assert await status_of(plane, fleet.part, fleet.secret) == "UNAUTHENTICATED"
        with pytest.raises(Unauthenticated):
            await plane.login.log_in(UNKNOWN, "api-key", "wrong", "::1")


async def test_token_of_an_unknown_part_is_not_refused(fleet: Fleet) -> None:
    async with open_plane(fleet.directory, fleet.clock) as plane:
        token = await plane.login.log_in(fleet.part, "robot-secret", fleet.secret, "::1")
        assert (await identify(plane, token)).id == fleet.part
        await fleet.clock.advance(10)

        def lose(tx: Transaction) -> None:
            tx.execute("DELETE FROM secret WHERE owner_id = ?", fleet.part)
            tx.execute("DELETE FROM host_label WHERE part_id = ?", fleet.part)
            tx.execute("DELETE FROM part WHERE id = ?", fleet.part)

        await plane.context.records.write(lose)
        with pytest.raises(CogworkError) as refused:
            await identify(plane, token)
        assert refused.value.status == "UNAVAILABLE"


async def test_credentials_that_are_removed_while_they_are_read_are_refused(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_plane(fleet.directory, fleet.clock) as plane:
        token = await plane.login.log_in(fleet.part, "robot-secret", fleet.secret, "::1")
        context = plane.context
        read = context.records.read

        async def read_before_the_removal(work: Callable[[Transaction], Any]) -> Any:
            found = await read(work)
            monkeypatch.setattr(context.records, "read", read)

            def remove(tx: Transaction) -> None:
                tx.execute("DELETE FROM secret WHERE owner_id = ?", fleet.part)
                tx.execute("UPDATE part SET deleted_at = 1 WHERE id = ?", fleet.part)

            await context.records.write(remove)
            context.actors.forget({fleet.part})
            return found

        monkeypatch.setattr(context.records, "read", read_before_the_removal)
        with pytest.raises(Unauthenticated, match="were removed"):
            await identify(plane, token)


def lose_records(directory: CloudDirectory) -> None:
    for file in directory.path.glob("records.db*"):
        file.unlink()


def damage_records(directory: CloudDirectory) -> None:
    size = directory.records.stat().st_size
    lose_records(directory)
    directory.records.write_bytes(b"\xff" * size)


def empty_records(directory: CloudDirectory) -> None:
    lose_records(directory)
    directory.records.write_bytes(b"")


def lose_a_table(directory: CloudDirectory) -> None:
    with contextlib.closing(sqlite3.connect(directory.records)) as records:
        records.execute("ALTER TABLE secret RENAME TO lost")


@pytest.mark.parametrize("spoil", [lose_records, damage_records, empty_records, lose_a_table])
async def test_storage_that_fails_refuses_nothing(
    fleet: Fleet, spoil: Callable[[CloudDirectory], None]
) -> None:
    """The file is damaged while the cloud is served."""
    async with open_plane(fleet.directory, fleet.clock) as plane:
        token = await plane.login.log_in(fleet.part, "robot-secret", fleet.secret, "::1")
    async with open_plane(fleet.directory, fleet.clock) as plane:
        spoil(fleet.directory)
        for part, secret in ((fleet.part, fleet.secret), (fleet.part, "wrong"), (UNKNOWN, "x")):
            assert await status_of(plane, part, secret) == "UNAVAILABLE"
        with pytest.raises(RecordsUnavailable):
            await identify(plane, token)


async def test_restored_cloud_refuses_no_part_for_a_day(fleet: Fleet) -> None:
    copy = fleet.directory.path.parent / "copy.db"
    back_up(fleet.directory, copy)
    async with open_plane(fleet.directory, fleet.clock) as plane:
        young, secret = await add_machine(plane, fleet.owner[0])
    replaced = restore(fleet.directory, copy, fleet.clock)
    assert replaced is not None
    assert replaced.exists()
    async with open_plane(fleet.directory, fleet.clock) as plane:
        after = await plane.context.records.read(read_cloud)
        assert after is not None
        assert after.restored_at == START * 1e6
        assert await status_of(plane, fleet.part, fleet.secret) == "OK"
        assert await status_of(plane, fleet.part, "newer secret") == "UNAVAILABLE"
        assert await status_of(plane, young, secret) == "UNAVAILABLE"
        fleet.clock._now += DAY
        assert await status_of(plane, fleet.part, "newer secret") == "UNAUTHENTICATED"
        assert await status_of(plane, young, secret) == "UNAVAILABLE"


async def test_restore_brings_deleted_keys_back(fleet: Fleet) -> None:
    """The guide says so, and how to delete them again."""
    copy = fleet.directory.path.parent / "copy.db"
    back_up(fleet.directory, copy)
    async with open_plane(fleet.directory, fleet.clock) as plane:
        await plane.context.records.write(delete_all_keys)
        with pytest.raises(Unauthenticated):
            await plane.login.log_in(fleet.owner[0], "api-key", fleet.owner[1], "::1")
    restore(fleet.directory, copy, fleet.clock)
    async with open_plane(fleet.directory, fleet.clock) as plane:
        await plane.login.log_in(fleet.owner[0], "api-key", fleet.owner[1], "::1")


def delete_all_keys(tx: Transaction) -> None:
    tx.execute("DELETE FROM role_grant")
    tx.execute("DELETE FROM api_key")


async def test_records_with_a_generation_are_read(fleet: Fleet) -> None:
    """Earlier versions wrote one."""
    with contextlib.closing(sqlite3.connect(fleet.directory.records)) as records:
        records.execute("UPDATE cloud SET generation = 1800000000")
        records.commit()
    async with open_plane(fleet.directory, fleet.clock) as plane:
        assert await status_of(plane, fleet.part, fleet.secret) == "OK"


async def test_replaced_records_are_noticed(fleet: Fleet) -> None:
    """Someone copies an older file back, without the command."""
    copy = fleet.directory.path.parent / "copy.db"
    back_up(fleet.directory, copy)
    async with open_plane(fleet.directory, fleet.clock) as plane:
        assert await status_of(plane, fleet.part, "wrong") == "UNAUTHENTICATED"
    shutil.copy(copy, fleet.directory.records)
    for _ in range(2):
        async with open_plane(fleet.directory, fleet.clock) as plane:
            found = await plane.context.records.read(read_cloud)
            assert found is not None
            assert found.restored_at == START * 1e6
            assert await status_of(plane, fleet.part, "wrong") == "UNAVAILABLE"


async def test_restart_is_no_restore(fleet: Fleet) -> None:
    for _ in range(3):
        async with open_plane(fleet.directory, fleet.clock) as plane:
            found = await plane.context.records.read(read_cloud)
            assert found is not None
            assert found.restored_at is None


async def test_lost_root_key_costs_no_login(fleet: Fleet) -> None:
    async with open_plane(fleet.directory, fleet.clock) as plane:
        token = await plane.login.log_in(fleet.part, "robot-secret", fleet.secret, "::1")
    fleet.directory.root_key.unlink()
    renew_root_key(fleet.directory, fleet.clock)
    assert fleet.directory.root_key.stat().st_mode & 0o777 == 0o600
    async with open_plane(fleet.directory, fleet.clock) as plane:
        assert await status_of(plane, fleet.part, fleet.secret) == "OK"
        await plane.login.log_in(fleet.owner[0], "api-key", fleet.owner[1], "::1")
        with pytest.raises(Unauthenticated, match="log in again"):
            await identify(plane, token)
        sealed = await plane.context.records.read(
            lambda tx: query_values(tx, str, "SELECT sealed FROM secret")
        )
        assert {plane.context.keyring.unseal(each) for each in sealed} == {""}
