"""A directory that is incomplete: it says so, instead of starting as an empty cloud."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cloud.cloud_at_rest import new_cloud, open_plane

from cogwork.cloud.commands.create_cloud import AlreadyInitialized, create_cloud
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, CloudInUse, NoCloud
from cogwork.core.clock import SystemClock
from cogwork.core.errors import CogworkError


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cloud") / "cloud"
    new_cloud(path)
    return path


@pytest.fixture
def directory(template: Path, tmp_path: Path) -> CloudDirectory:
    return CloudDirectory(Path(shutil.copytree(template, tmp_path / "cloud")))


def other_cloud(directory: CloudDirectory, name: str) -> None:
    """Take a file of another cloud."""
    other, _ = new_cloud(directory.path.parent / "other")
    shutil.copy(other.path / name, directory.path / name)


def execute(directory: CloudDirectory, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(directory.records)) as records:
        records.execute(sql)
        records.commit()


def empty_database(directory: CloudDirectory) -> None:
    directory.records.unlink()
    with contextlib.closing(sqlite3.connect(directory.records)) as records:
        records.execute("VACUUM")


def truncate(directory: CloudDirectory) -> None:
    data = directory.records.read_bytes()
    directory.records.write_bytes(data[: len(data) // 2])


FAULTS: dict[str, tuple[Callable[[CloudDirectory], object], str]] = {
    "no records": (lambda d: d.records.unlink(), "records.db is missing"),
    "empty records": (lambda d: d.records.write_bytes(b""), "records.db is empty"),
    "no tables": (empty_database, "holds no cloud|is empty"),
    "truncated": (truncate, "records.db is damaged"),
    "not a database": (lambda d: d.records.write_bytes(b"x" * 9000), "records.db is damaged"),
    "no settings": (lambda d: d.settings.unlink(), "cloud.json is missing"),
    "bad settings": (lambda d: d.settings.write_text("{"), "cloud.json cannot be read"),
    "no root key": (lambda d: d.root_key.unlink(), "root-key is missing"),
    "bad root key": (lambda d: d.root_key.write_text("x"), "is not a root key"),
    "other root key": (lambda d: other_cloud(d, "root-key"), "root key does not unseal"),
    "other records": (lambda d: other_cloud(d, "records.db"), "belongs to the cloud"),
    "no keys": (lambda d: execute(d, "DELETE FROM cloud_key"), "has no token and no part-token"),
    "no token key": (
        lambda d: execute(d, "DELETE FROM cloud_key WHERE purpose = 'token'"),
        "has no token key",
    ),
    "no cloud": (lambda d: execute(d, "DELETE FROM cloud"), "holds no cloud"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_incomplete_cloud_does_not_start(directory: CloudDirectory, name: str) -> None:
    spoil, sentence = FAULTS[name]
    spoil(directory)
    before = {file.name for file in directory.path.iterdir()} | {"records.db-wal", "records.db-shm"}
    for _ in range(2):  # the first time must not leave anything that lets the second one start
        with pytest.raises(CogworkError, match=sentence):
            async with open_plane(directory):
                pass
    assert {file.name for file in directory.path.iterdir()} <= before | {"lock", "logs"}


async def test_complete_cloud_starts_again(directory: CloudDirectory) -> None:
    for _ in range(2):
        async with open_plane(directory) as plane:
            assert plane.context.keys.authority_bundle == directory.authorities.read_bytes()


async def test_one_process_opens_a_cloud_at_a_time(directory: CloudDirectory) -> None:
    async with open_plane(directory):
        with pytest.raises(CloudInUse, match=r"in use by the process \d+; stop it first"):
            async with open_plane(directory):
                pass
    async with open_plane(directory):
        pass


def test_init_creates_a_cloud_once(directory: CloudDirectory) -> None:
    with pytest.raises(AlreadyInitialized):
        create_cloud(directory, "fleet.test", "Acme", SystemClock())
    directory.settings.unlink()
    with pytest.raises(NoCloud, match="interrupted"):
        create_cloud(directory, "fleet.test", "Acme", SystemClock())


def test_interrupted_init_can_be_repeated(tmp_path: Path) -> None:
    directory = CloudDirectory(tmp_path)
    directory.create_root_key()
    (tmp_path / "records.new.db").write_bytes(b"half of a database")
    create_cloud(directory, "fleet.test", "Acme", SystemClock())
    assert directory.require_current().domain == "fleet.test"


def test_files_are_for_their_owner_only(template: Path) -> None:
    modes = {file.name: file.stat().st_mode & 0o777 for file in template.iterdir()}
    assert modes.pop("ca.pem") == 0o644
    assert set(modes.values()) == {0o600}
    assert template.stat().st_mode & 0o777 == 0o700


def test_root_key_is_not_shown() -> None:
    assert "secret" not in repr(CloudDirectory(Path("cloud"), "secret"))
