"""The removal of the agent: what it installed goes, and what belongs to others stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.installation.computer import Computer

from cogwork.agent.errors import CannotInstallAgent


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    return Computer(tmp_path, monkeypatch)


@pytest.fixture
def installed(computer: Computer) -> Computer:
    computer.boot()
    computer.install()
    (computer.programs.parent / "calls").unlink()
    computer.said.clear()
    return computer


def test_services_and_versions_go_and_data_stays(installed: Computer) -> None:
    installed.uninstall()
    assert installed.calls == [
        "systemctl stop cogwork-agent.service",
        "systemctl disable cogwork-agent.service",
        "systemctl stop cogwork-server.service",
        "systemctl disable cogwork-server.service",
        "systemctl daemon-reload",
    ]
    assert [*installed.units.iterdir()] == []
    assert not installed.layout.root.exists()
    assert installed.config.exists()
    assert installed.data.exists()
    assert installed.said[-1].startswith(f"Kept {installed.config} and {installed.data}.")
    assert installed.said[-1].endswith("uninstall --purge")


def test_purge_deletes_the_data_and_the_user(installed: Computer) -> None:
    (installed.data / "kept").touch()
    installed.uninstall(purge=True)
    assert not installed.config.parent.exists()
    assert not installed.data.exists()
    # No user has this directory, so none is deleted.
    assert not any(call.startswith("userdel") for call in installed.calls)


def test_files_beside_the_configuration_stay(installed: Computer) -> None:
    other = installed.config.parent / "notes.txt"
    other.touch()
    installed.uninstall(purge=True)
    assert other.exists()
    assert not installed.config.exists()


def test_without_systemd_only_files_are_removed(computer: Computer) -> None:
    computer.install()
    computer.uninstall()
    assert [call for call in computer.calls if "stop" in call or "daemon-reload" in call] == []
    assert not computer.layout.root.exists()


def test_unit_of_someone_else_stays(computer: Computer) -> None:
    unit = computer.units / "cogwork-server.service"
    unit.write_text("[Service]\n")
    computer.uninstall()
    assert unit.exists()
    assert computer.calls == []


def test_what_was_never_installed_is_no_fault(computer: Computer) -> None:
    computer.data.rmdir()
    computer.uninstall()
    assert computer.said == []


def test_service_of_the_debian_package_can_be_used_again(computer: Computer) -> None:
    computer.add_package()
    computer.install()
    computer.uninstall()
    assert "sudo systemctl enable --now cogwork-server" in computer.said[-1]


def test_data_of_the_debian_package_is_not_purged(computer: Computer) -> None:
    computer.add_package()
    with pytest.raises(CannotInstallAgent, match="sudo apt purge cogwork"):
        computer.uninstall(purge=True)
    assert computer.data.exists()
    computer.install()
    computer.uninstall(purge=True)
    assert not computer.data.exists()


def test_other_configuration_is_named_in_what_to_do(installed: Computer) -> None:
    installed.config = installed.config.with_name("other.json")
    installed.uninstall()
    assert installed.said[-1].endswith(f"uninstall --purge --config {installed.config}")
