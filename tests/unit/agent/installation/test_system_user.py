"""The user of the server: created with the groups of devices, and deleted by its directory."""

from __future__ import annotations

import grp
import pwd
from pathlib import Path

import pytest
from tests.unit.agent.installation.computer import Computer

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.system_user import create_user, delete_users, has_user


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    return Computer(tmp_path, monkeypatch)


def test_known_users() -> None:
    assert has_user("root")
    assert not has_user("cogwork-of-a-test")


def test_user_gets_the_groups_of_devices_that_exist(computer: Computer, tmp_path: Path) -> None:
    groups = create_user("cogwork-of-a-test", tmp_path)
    known = {each.gr_name for each in grp.getgrall()}
    assert "video" in groups or "video" not in known
    assert set(groups) <= known
    assert computer.calls == [
        "useradd --system --user-group --shell /usr/sbin/nologin "
        f"--home-dir {tmp_path} --no-create-home --groups {','.join(groups)} cogwork-of-a-test"
    ]


def test_users_are_deleted_by_their_directory(
    computer: Computer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = pwd.struct_passwd(("press", "x", 999, 999, "", str(tmp_path), "/usr/sbin/nologin"))
    everyone = [*pwd.getpwall(), ours]
    monkeypatch.setattr(pwd, "getpwall", lambda: everyone)
    assert delete_users(tmp_path) == ["press"]
    assert computer.calls == ["userdel press"]


def test_program_that_fails_is_explained(computer: Computer, tmp_path: Path) -> None:
    computer.add_program("useradd", "echo 'cannot lock /etc/passwd' >&2; exit 1")
    with pytest.raises(CannotInstallAgent, match="useradd failed: cannot lock /etc/passwd"):
        create_user("cogwork-of-a-test", tmp_path)


def test_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotInstallAgent, match="cannot run useradd"):
        create_user("cogwork-of-a-test", tmp_path)
