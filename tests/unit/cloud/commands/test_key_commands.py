"""The commands for keys, backups and repairs: what they print, and what they refuse."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cloud.cloud_at_rest import new_cloud, open_plane

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.keys.root_key import ROOT_KEY_VARIABLE
from cogwork.cloud.main import main
from cogwork.cloud.storage.records import RecordsUnavailable
from cogwork.cloud.storage.schema import MIGRATIONS
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import read_records
from cogwork.cloud.storage.tables import RoleGrantRow


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory, _ = new_cloud(tmp_path_factory.mktemp("cloud") / "cloud")
    return directory.path


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "cloud"))


class Commands:
    def __init__(self, data: Path, output: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._output = output

    def run(self, *arguments: str) -> str:
        assert main([*arguments, "--data", str(self.data)]) == 0
        return self._output.readouterr().out

    def fail(self, *arguments: str) -> str:
        assert main([*arguments, "--data", str(self.data)]) == 1
        return self._output.readouterr().err


@pytest.fixture
def cloud(data: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(data, capsys)


def read_key(printed: str) -> tuple[str, str]:
    key_id, key = (line.split()[-1] for line in printed.splitlines() if line[:5] == "  key")
    return key_id, key


async def test_lost_owner_key_is_replaced(cloud: Commands) -> None:
    key_id, key = read_key(cloud.run("key", "create"))
    async with open_plane(CloudDirectory(cloud.data)) as plane:
        actor = await plane.login.verify(key_id, "api-key", key, "::1")
        (grant,) = await plane.context.records.read(
            lambda tx: select(tx, RoleGrantRow, "WHERE key_id = ?", actor.id)
        )
    assert (grant.resource_type, grant.role) == ("organization", "owner")


def test_owner_chooses_among_organizations(cloud: Commands) -> None:
    with closing(sqlite3.connect(cloud.data / "records.db")) as records:
        records.execute("INSERT INTO organization (id, name, created_at) VALUES ('o', 'Bolt', 0)")
        records.commit()
    assert "choose one of the organizations with --organization: Acme (" in cloud.fail(
        "key", "create"
    )
    assert 'no organization "Gone"; choose one of: Acme (' in cloud.fail(
        "key", "create", "--organization", "Gone"
    )
    for wanted in ("Bolt", "o"):
        assert "owner of Bolt" in cloud.run("key", "create", "--organization", wanted)


def test_keys_are_listed_with_their_states(cloud: Commands) -> None:
    cloud.run("key", "rotate", "authority")
    found = json.loads(cloud.run("key", "list", "--json"))
    states = [(each["purpose"], each["state"]) for each in found]
    assert states == [
        ("authority", "active"),
        ("authority", "next"),
        ("part-token", "active"),
        ("sealing", "active"),
        ("token", "active"),
    ]
    table = cloud.run("key", "list").splitlines()
    assert table[0].split() == ["PURPOSE", "STATE", "ID", "CREATED", "USED", "FROM", "ENDS"]
    assert len(table) == 6
    assert (cloud.data / "ca.pem").read_text().count("BEGIN CERTIFICATE") == 2
    assert "PRIVATE" not in (cloud.data / "ca.pem").read_text()


def test_second_rotation_says_what_to_do(cloud: Commands) -> None:
    assert "It is used from " in cloud.run("key", "rotate", "part-token")
    assert "--now" in cloud.fail("key", "rotate", "part-token")
    assert "It is used from now on." in cloud.run("key", "rotate", "part-token", "--now")


def test_root_key_may_be_in_the_environment(
    cloud: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cloud.data / "root-key"
    monkeypatch.setenv(ROOT_KEY_VARIABLE, file.read_text())
    file.unlink()
    cloud.run("key", "create")
    monkeypatch.delenv(ROOT_KEY_VARIABLE)
    assert "root-key is missing" in cloud.fail("key", "create")


def test_backup_is_restored(cloud: Commands, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    cloud.run("backup", copy)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert "exists; name another file" in cloud.fail("backup", copy)
    before = (tmp_path / "copy.db").read_bytes()
    (cloud.data / "records.db").write_bytes(b"damaged")
    assert "damaged" in cloud.fail("key", "list")
    assert "the former ones are " in cloud.run("restore", copy)
    assert len(cloud.run("key", "list").splitlines()) == 5
    assert (tmp_path / "copy.db").read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"cloud", "copy.db"}


def test_records_of_another_cloud_are_not_restored(cloud: Commands, tmp_path: Path) -> None:
    other, _ = new_cloud(tmp_path / "other")
    before = (cloud.data / "records.db").read_bytes()
    assert "the records belong to the cloud" in cloud.fail("restore", str(other.records))
    assert "missing or empty" in cloud.fail("restore", str(tmp_path / "gone.db"))
    (tmp_path / "text").write_text("text")
    assert "damaged" in cloud.fail("restore", str(tmp_path / "text"))
    assert (cloud.data / "records.db").read_bytes() == before


def test_disk_that_was_restored_is_marked(cloud: Commands) -> None:
    assert "For 24 hours" in cloud.run("restore")
    with closing(sqlite3.connect(cloud.data / "records.db")) as records:
        ((restored_at,),) = records.execute("SELECT restored_at FROM cloud").fetchall()
    assert restored_at is not None


def test_repair_replaces_a_lost_root_key(cloud: Commands) -> None:
    (cloud.data / "root-key").unlink()
    assert "repair --new-root-key" in cloud.fail("key", "create")
    assert "work as before" in cloud.run("repair", "--new-root-key")
    cloud.run("key", "create")
    assert not (cloud.data / "new-root-key").exists()


async def test_served_cloud_is_not_restored_or_repaired(cloud: Commands) -> None:
    async with open_plane(CloudDirectory(cloud.data)):
        for command in (["restore"], ["repair", "--new-root-key"]):
            assert "is in use by the process" in cloud.fail(*command)
        cloud.run("key", "list")


def test_commands_do_not_migrate_records_that_may_be_served(
    cloud: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloud of an older version is served while the commands are those of the next one."""
    path = cloud.data / "records.db"
    before = read_version(path)
    migrations = [*MIGRATIONS, "CREATE TABLE added (id TEXT)"]
    monkeypatch.setattr("cogwork.cloud.storage.sqlite_records.MIGRATIONS", migrations)
    for command in (
        *(["key", "list"], ["usage"], ["release", "list"], ["release", "status"]),
        *(["key", "create"], ["key", "rotate", "token"]),
        *(["release", "pause", "stable", "server"], ["release", "add", str(path)]),
    ):
        assert "older version of cogwork-cloud; upgrade it by" in cloud.fail(*command)
        assert read_version(path) == before
    cloud.run("restore")  # it locks the directory, so nothing else uses the records
    assert read_version(path) == before + 1
    cloud.run("key", "list")


def read_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as records:
        ((version,),) = records.execute("PRAGMA user_version").fetchall()
    return int(version)


def test_reading_commands_change_nothing(cloud: Commands) -> None:
    path = cloud.data / "records.db"
    with pytest.raises(RecordsUnavailable, match="readonly"):
        read_records(path, lambda tx: tx.execute("DELETE FROM role_grant"))
    for command in (["key", "list"], ["usage"], ["release", "list"], ["release", "status"]):
        cloud.run(*command)
