"""The directory of a cloud of version 0.1 becomes one of this version, once."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.support.cloud.cloud_at_rest import identify, open_plane
from tests.support.cloud.first_version_cloud import FirstVersionCloud
from tests.support.cloud.old_records import FIRST_RELEASE

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, NoCloud
from cogwork.cloud.control_plane.upgrade import BACKUP, STEPS, upgrade_directory
from cogwork.cloud.keys.key_records import list_part_token_keys
from cogwork.cloud.storage.select import query_values
from cogwork.core.clock import SystemClock

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> FirstVersionCloud:
    found = FirstVersionCloud(tmp_path_factory.mktemp("first") / "cloud")
    found.write(secrets=3)
    return found


@pytest.fixture
def directory(template: FirstVersionCloud, tmp_path: Path) -> CloudDirectory:
    return CloudDirectory(Path(shutil.copytree(template.path, tmp_path / "cloud")))


async def check(directory: CloudDirectory, former: FirstVersionCloud) -> None:
    """Check that everything works that worked before."""
    async with open_plane(directory) as plane:
        login = plane.login
        await login.log_in("k", "api-key", "key of k", "::1")
        await login.log_in("p", "robot-secret", "secret 0", "::1")
        for entity, kind, secret in (
            ("k", "api-key", "key of k"),
            ("p", "robot-secret", "secret 0"),
            ("press.l.fleet.test", "robot-location-secret", "hall"),
        ):
            await identify(plane, former.token(entity, kind, secret))
        context = plane.context
        assert context.authority.pem.certificate == (former.path / "ca.pem").read_bytes()
        assert context.keys.part_token_key.id == former.part_token_key.id
        assert await context.records.read(list_part_token_keys) == [former.part_token_key.public]
        sealed = await context.records.read(
            lambda tx: query_values(tx, str, "SELECT sealed FROM secret ORDER BY id")
        )
        texts = [*map(context.keyring.unseal, sealed)]
        assert texts == ["secret 0", "secret 1", "secret 2", "hall"]


async def test_everything_works_afterwards(
    directory: CloudDirectory, template: FirstVersionCloud
) -> None:
    for _ in range(2):
        await check(directory, template)
    names = {file.name for file in directory.path.iterdir()}
    assert not names & {"signing-key.pem", "machine-token-key.pem", "ca-key.pem"}


@pytest.mark.parametrize("count", range(len(STEPS)))
async def test_interrupted_upgrade_goes_on(
    directory: CloudDirectory, template: FirstVersionCloud, count: int
) -> None:
    for step in STEPS[:count]:
        step(directory, CLOCK)
    if count == 0:  # in the middle of the copies
        (directory.path / BACKUP).mkdir()
        (directory.path / BACKUP / "records.new.db").write_bytes(b"half of a database")
    await check(directory, template)


def test_former_files_are_kept(directory: CloudDirectory, template: FirstVersionCloud) -> None:
    upgrade_directory(directory, CLOCK)
    backup = directory.path / BACKUP
    for file in template.path.glob("*.*"):
        if file.suffix != ".db":
            assert (backup / file.name).read_bytes() == file.read_bytes()
    with contextlib.closing(sqlite3.connect(backup / "records.db")) as records:
        assert records.execute("PRAGMA user_version").fetchone() == (FIRST_RELEASE,)
        rows = records.execute("SELECT digest FROM secret WHERE id = 's0'").fetchall()
    assert rows == [(template.key.digest("secret 0").hex(),)]
    assert {file.stat().st_mode & 0o777 for file in backup.iterdir()} == {0o600}
    assert backup.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name", ["signing-key.pem", "machine-token-key.pem", "ca-key.pem", "ca.pem"]
)
@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN"])
def test_incomplete_directory_is_left_alone(
    directory: CloudDirectory, name: str, content: bytes | None
) -> None:
    file = directory.path / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NoCloud, match="restore it from a backup"):
        upgrade_directory(directory, CLOCK)
    assert directory.needs_upgrade()


def test_key_of_another_cloud_is_refused(directory: CloudDirectory) -> None:
    other = FirstVersionCloud(directory.path.parent / "other")
    other.write()
    shutil.copy(other.path / "signing-key.pem", directory.path)
    with pytest.raises(NoCloud, match=r"signing-key.pem does not belong to records.db"):
        upgrade_directory(directory, CLOCK)
    assert (directory.path / "signing-key.pem").exists()


async def test_secrets_of_a_lost_key_do_not_keep_the_others_from_working(
    directory: CloudDirectory,
    template: FirstVersionCloud,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Version 0.1 made another signing key when the file was gone."""
    with contextlib.closing(sqlite3.connect(directory.records)) as records:
        records.execute("UPDATE secret SET sealed = 'AAAA', digest = 'x' WHERE id = 's2'")
        records.commit()
    upgrade_directory(directory, CLOCK)
    assert "1 keys and secrets cannot be used" in caplog.text
    async with open_plane(directory) as plane:
        await plane.login.log_in("p", "robot-secret", "secret 0", "::1")


def test_commands_say_that_an_upgrade_is_due(directory: CloudDirectory) -> None:
    with pytest.raises(NoCloud, match=r"upgrade it by starting it .* cogwork-cloud serve"):
        directory.require_current()
