"""What ran the machine before: it gives way, and returns if the server does not start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.media.rtsp_server import free_port
from tests.unit.agent.installation.computer import Computer

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.predecessor import find_predecessors
from cogwork.systemd.systemctl import SystemctlFailed


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    made = Computer(tmp_path, monkeypatch)
    made.boot()
    return made


def test_units_are_found_where_they_are_installed(computer: Computer) -> None:
    assert find_predecessors() == []
    package = computer.add_package()
    other = computer.add_other_agent()
    assert [each.unit for each in find_predecessors()] == [other, package]


def test_other_agent_gives_way_and_can_be_used_again(computer: Computer) -> None:
    computer.add_other_agent()
    computer.install()
    # It would run the machine after a power cut until ours does.
    assert computer.calls[0] == "systemctl stop viam-agent.service"
    assert computer.calls[-1] == "systemctl disable viam-agent.service"
    # The machine is the same one, and its file stays for the way back.
    assert computer.config.read_text() == computer.other_config.read_text()
    computer.uninstall()
    assert computer.said[-1].endswith("run: sudo systemctl enable --now viam-agent")


NEVER_READY = """case "$*" in
*cogwork-server*) echo ActiveState=activating;;
*) echo ActiveState=active;;
esac"""
NO_RESTART = '[ "$1" != restart ] && echo ActiveState=active'


@pytest.mark.parametrize(
    ("systemctl", "reason"),
    [(NEVER_READY, "the server did not start within 0 s"), (NO_RESTART, "restart .* failed")],
    ids=["server", "systemd"],
)
def test_other_agent_runs_again_if_ours_cannot(
    computer: Computer, systemctl: str, reason: str
) -> None:
    computer.add_other_agent()
    computer.add_program("systemctl", systemctl)
    with pytest.raises((CannotInstallAgent, SystemctlFailed), match=reason):
        computer.install()
    assert computer.said[-1] == "Started viam-agent.service again, which runs the machine."
    assert computer.calls[-1] == "systemctl enable --now viam-agent.service"
    assert not computer.layout.root.exists()
    assert [each.name for each in computer.units.iterdir()] == ["viam-agent.service"]
    # The next attempt copies what is current then.
    assert not computer.config.exists()


def test_configuration_of_an_earlier_time_is_not_used(computer: Computer) -> None:
    computer.add_other_agent()
    computer.config.parent.mkdir()
    computer.config.write_text('{"cloud": {"id": "other"}}')
    with pytest.raises(CannotInstallAgent, match="delete the one"):
        computer.install()
    assert computer.calls == []


def test_machine_that_cannot_log_in_to_its_cloud_stays_as_it_is(computer: Computer) -> None:
    computer.add_other_agent()
    cloud = {"id": "press", "secret": "s", "app_address": f"http://localhost:{free_port()}"}
    computer.other_config.write_text(json.dumps({"cloud": cloud}))
    with pytest.raises(CannotInstallAgent, match="cannot log in to its cloud"):
        computer.install()
    assert "systemctl stop viam-agent.service" not in computer.calls
    assert not computer.config.exists()


def test_agent_that_is_not_used_stays_as_it_is(computer: Computer) -> None:
    computer.add_other_agent()
    computer.add_program("systemctl", "echo ActiveState=inactive; echo UnitFileState=disabled")
    computer.install()
    assert not any("viam-agent" in call for call in computer.calls)
    assert json.loads(computer.config.read_text()) == {"components": [], "services": []}


def test_command_of_the_agent_comes_and_goes(computer: Computer) -> None:
    computer.install()
    assert str(computer.layout.root) in computer.command.read_text()
    assert computer.command.stat().st_mode & 0o777 == 0o755
    computer.uninstall()
    assert not computer.command.exists()


def test_command_of_a_package_is_not_shadowed(computer: Computer) -> None:
    computer.add_program("cogwork-agent")
    computer.install()
    assert not computer.command.exists()
