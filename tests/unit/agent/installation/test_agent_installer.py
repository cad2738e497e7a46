"""The installation of the agent: everything is there, and what others made stays."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.unit.agent.installation.computer import Computer

from cogwork.agent.errors import BadRelease, CannotInstallAgent
from cogwork.core.versions.product import Product
from cogwork.systemd.systemctl import SystemctlFailed

SERVER, AGENT = Product.SERVER, Product.AGENT
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    return Computer(tmp_path, monkeypatch)


def test_everything_is_installed_and_started(computer: Computer) -> None:
    computer.boot()
    computer.installer(updates="/mnt").install(computer.make_releases(), [computer.key])
    layout = computer.layout
    assert layout.current_version(SERVER) == layout.current_version(AGENT) == "1.0.0"
    assert layout.launcher.stat().st_mode & 0o777 == 0o644
    assert (layout.keys / "publisher.pem").read_bytes() == computer.key.read_bytes()
    settings = json.loads(layout.settings.read_bytes())
    assert settings == {"config": str(computer.config), "updates": "/mnt"}
    assert json.loads(computer.config.read_bytes()) == {"components": [], "services": []}
    script = layout.root / "run-server"
    assert script.stat().st_mode & 0o777 == 0o755
    assert str(computer.config) in script.read_text()
    assert "User=daemon\n" in (computer.units / "cogwork-server.service").read_text()
    agent_unit = (computer.units / "cogwork-agent.service").read_text()
    assert f"{layout.launcher} {layout.root}\n" in agent_unit
    # Not that of a version, which comes and goes.
    assert str(layout.versions) not in agent_unit
    assert computer.calls == [
        "systemctl daemon-reload",
        "systemctl enable cogwork-agent.service",
        "systemctl restart cogwork-agent.service",
    ]
    assert computer.said[-1] == "To undo this, run: sudo cogwork-agent uninstall"


def test_without_systemd_it_says_how_to_start_the_agent(computer: Computer) -> None:
    computer.install()
    assert computer.calls == []
    expected = f"run: sudo python3 -I {computer.layout.launcher} {computer.layout.root}"
    assert any(line.endswith(expected) for line in computer.said)


def test_another_installation_keeps_what_people_changed(computer: Computer) -> None:
    computer.install()
    windows = [{"start": "0 2 * * *", "duration": "1h"}]
    computer.layout.settings.write_text(json.dumps({"windows": windows, "later": 1}))
    computer.config.write_text('{"debug": true}')
    computer.installer(updates="/mnt").install(computer.prepare("1.1.0"), [])
    settings = json.loads(computer.layout.settings.read_bytes())
    assert settings == {
        "windows": windows,
        "later": 1,
        "config": str(computer.config),
        "updates": "/mnt",
    }
    assert computer.config.read_text() == '{"debug": true}'
    # The agent switches, with a trial.
    assert computer.layout.current_version(SERVER) == "1.0.0"
    assert computer.layout.installed(SERVER) == ["1.0.0", "1.1.0"]


def test_nothing_changes_if_a_release_is_not_trusted(computer: Computer) -> None:
    foreign = Ed25519PrivateKey.generate()
    good, _ = computer.make_releases()
    archive = computer.releases.make(AGENT, "1.0.0", "", key=foreign)
    with pytest.raises(BadRelease):
        computer.installer().install([good, archive], [computer.key])
    assert not computer.layout.root.exists()
    assert (computer.said, computer.calls) == ([], [])


def test_file_that_is_no_key_is_refused(computer: Computer) -> None:
    computer.key.write_text("not a key")
    with pytest.raises(CannotInstallAgent, match=r"publisher\.pem is not a public key"):
        computer.installer().install(computer.make_releases(), [computer.key])
    assert not computer.layout.root.exists()


def test_both_products_are_needed(computer: Computer) -> None:
    server, _ = computer.make_releases()
    computer.layout.slot(SERVER, "1.0.0").mkdir(parents=True)
    with pytest.raises(CannotInstallAgent, match="no version of the agent is installed"):
        computer.installer().install([server], [computer.key])
    assert not computer.config.exists()
    assert [*computer.units.iterdir()] == []


def test_unit_of_someone_else_is_not_replaced(computer: Computer) -> None:
    unit = computer.units / "cogwork-server.service"
    unit.write_text("[Service]\n")
    with pytest.raises(CannotInstallAgent, match="remove that service first"):
        computer.installer().install(computer.make_releases(), [computer.key])
    assert unit.read_text() == "[Service]\n"
    assert not computer.layout.root.exists()


@pytest.mark.parametrize("is_booted", [False, True])
def test_service_of_the_debian_package_gives_way(computer: Computer, is_booted: bool) -> None:
    computer.add_package()
    if is_booted:
        computer.boot()
    computer.install()
    stop = ["systemctl stop cogwork-server.service"] if is_booted else []
    assert computer.calls[: len(stop) + 1] == [*stop, "systemctl disable cogwork-server.service"]
    # The machine is the same one.
    assert computer.config.read_text() == '{"debug": true}'
    before = len(computer.calls)
    computer.install()
    assert not any("disable" in call for call in computer.calls[before:])


def test_systemd_that_refuses_is_explained(computer: Computer) -> None:
    computer.boot()
    computer.add_program("systemctl", "echo Access denied >&2; exit 1")
    with pytest.raises(SystemctlFailed, match="Access denied"):
        computer.install()


@as_root
def test_server_may_replace_its_configuration(computer: Computer) -> None:
    computer.install(user="daemon")
    daemon = pwd.getpwnam("daemon")
    for path in (computer.config, computer.config.parent):
        assert (path.stat().st_uid, path.stat().st_gid) == (daemon.pw_uid, daemon.pw_gid)
    # What a person owns, the person edits again.
    os.chown(computer.config, 4711, 4711)
    computer.install(user="root")
    assert computer.config.stat().st_uid == 4711


@as_root
def test_directory_of_others_stays_theirs(computer: Computer, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    computer.install(user="daemon", config=shared / "machine.json")
    assert shared.stat().st_uid == 0
    assert (shared / "machine.json").stat().st_uid == pwd.getpwnam("daemon").pw_uid


@as_root
def test_user_of_the_server_is_created_once_it_is_needed(computer: Computer) -> None:
    computer.config.parent.mkdir()
    computer.config.write_text("{}")
    for path in (computer.config, computer.config.parent):
        os.chown(path, 4711, 4711)
    computer.install(user="root")
    computer.install(user="daemon")
    assert computer.calls == []
    computer.install(user="cogwork-of-a-test")
    (call,) = computer.calls
    assert call.startswith("useradd --system --user-group")
    assert call.endswith(" cogwork-of-a-test")
    assert f"--home-dir {computer.data}" in call
