"""The agent under a real systemd: installed, updated, killed, removed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent.releases import ReleaseMaker
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.sizes import limit
from tests.support.waiting import block_until

from cogwork import __version__

pytestmark = needs_systemd

AGENT = (sys.executable, "-m", "cogwork.agent.main")
ROOT = "opt/cogwork"
SERVER_SERVICE, AGENT_SERVICE = "cogwork-server.service", "cogwork-agent.service"
PLACES = "/etc /opt /usr /var/lib"
"""Where an installation may leave something."""


class InstalledSystem:
    def __init__(self, system: BootedSystem, directory: Path) -> None:
        self.system = system
        self.directory = directory
        self.releases = ReleaseMaker(directory)
        (directory / "key.pem").write_bytes(self.releases.public_key())

    def offer(self, archive: Path, version: str) -> None:
        for path, data in (
            (archive, archive.read_bytes()),
            (self.directory / "channel.json", json.dumps({"server": version}).encode()),
        ):
            self.write(path, data)

    def write(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        """An overlay need not show what changes below it after it was mounted."""
        there = self.system.root / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(data)
        there.chmod(mode)

    def prepare_agent(self) -> None:
        """Put an agent into its slot that is the one of this environment."""
        slot = f"/{ROOT}/versions/agent-{__version__}"
        self.system.run(sys.executable, "-m", "venv", "--without-pip", slot)
        here = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/here.pth"
        self.write(Path(slot, here), "\n".join(filter(os.path.isdir, sys.path)).encode())
        link = self.system.root / ROOT / "current-agent"
        link.symlink_to(f"versions/agent-{__version__}")

    def install(self, archive: Path, *options: str, check: bool = True) -> str:
        """Return what `install` said."""
        self.write(archive, archive.read_bytes())
        self.write(self.directory / "key.pem", self.releases.public_key())
        done = self.system.run(
            *(*AGENT, "install", "--release", str(archive), "--key"),
            *(str(self.directory / "key.pem"), "--updates", str(self.directory), *options),
            check=check,
        )
        return done.stdout + done.stderr

    def set_quick_times(self) -> None:
        path = self.system.root / ROOT / "agent.json"
        settings = json.loads(path.read_bytes())
        quick = {"start_timeout": 5, "probe_interval": 0.3, "check_interval": 0.5}
        path.write_text(json.dumps({**settings, **quick}))
        self.system.run("systemctl", "restart", AGENT_SERVICE)

    def running_version(self) -> str:
        try:
            serving = json.loads((self.system.root / "run/cogwork/serving.json").read_bytes())
        except (OSError, ValueError):
            return ""
        done = self.system.run("curl", "-s", f"{serving['url']}/restart_status", check=False)
        return str(json.loads(done.stdout)["version"]) if done.returncode == 0 else ""

    def progress(self) -> dict[str, Any]:
        try:
            found = json.loads((self.system.root / ROOT / "progress.json").read_bytes())
        except (OSError, ValueError):
            return {}
        value: dict[str, Any] = found["products"].get("server", {})
        return value

    def server_process(self) -> int:
        return int(self.system.show(SERVER_SERVICE, "MainPID"))

    def list_files(self) -> set[str]:
        found = self.system.run("find", *PLACES.split(), "-not", "-name", "*.pyc").stdout
        return {
            each
            for each in found.splitlines()
            if not each.startswith("/var/lib/systemd") and "__pycache__" not in each
        }


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[InstalledSystem]:
    (tmp_path / "system").mkdir()
    (tmp_path / "releases").mkdir()
    with boot_systemd(tmp_path / "system") as booted:
        yield InstalledSystem(booted, tmp_path / "releases")


def wait_until(condition: Callable[[], object]) -> None:
    block_until(condition, limit(15), every=0.1)


def test_agent_lives_its_life(installed: InstalledSystem) -> None:
    before = installed.list_files()
    installed.prepare_agent()
    # The Python of the tests may be in the home directory of root.
    print(installed.install(installed.releases.make_server("1.0.0"), "--user", "root"))
    installed.offer(installed.releases.make_server("1.0.0"), "1.0.0")
    installed.set_quick_times()
    wait_until(lambda: installed.running_version() == "1.0.0")

    assert installed.system.show(AGENT_SERVICE, "Type") == "notify"
    verify_units(installed.system)
    check_watchdog(installed)

    process = installed.server_process()
    installed.system.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", AGENT_SERVICE)
    wait_until(lambda: installed.system.show(AGENT_SERVICE, "NRestarts") == "2")
    wait_until(lambda: installed.system.show(AGENT_SERVICE, "ActiveState") == "active")
    assert installed.server_process() == process

    installed.offer(installed.releases.make_server("2.0.0"), "2.0.0")
    wait_until(
        lambda: (
            installed.progress().get("phase") == "current"
            and installed.running_version() == "2.0.0"
        )
    )

    bad = installed.releases.make_server("3.0.0", at_start="raise SystemExit(7)")
    installed.offer(bad, "3.0.0")
    wait_until(lambda: installed.progress().get("phase") == "failed")
    assert "exit code 7" in installed.progress()["detail"]
    wait_until(lambda: installed.running_version() == "2.0.0")

    print(installed.system.run(*AGENT, "status").stdout)
    print(installed.system.run(*AGENT, "uninstall").stdout)
    left = installed.list_files() - before
    assert left == {"/etc/cogwork", "/etc/cogwork/machine.json", "/var/lib/cogwork"}


def verify_units(system: BootedSystem) -> None:
    for service in (AGENT_SERVICE, SERVER_SERVICE):
        done = system.run("systemd-analyze", "verify", f"/etc/systemd/system/{service}")
        assert f"{service}:" not in done.stderr


def check_watchdog(installed: InstalledSystem) -> None:
    """Let the launcher hang: systemd starts it again, and the server goes on."""
    system = installed.system
    impatient = b"[Service]\nWatchdogSec=3\nRestartSec=100ms\n"
    installed.write(Path(f"/etc/systemd/system/{AGENT_SERVICE}.d/test.conf"), impatient)
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "restart", AGENT_SERVICE)
    server, launcher = installed.server_process(), int(system.show(AGENT_SERVICE, "MainPID"))
    # Twice a sign of life, of which systemd expects one in this time.
    for _ in range(2):
        system.wait_for_sign_of_life(AGENT_SERVICE)
    assert int(system.show(AGENT_SERVICE, "MainPID")) == launcher
    system.run("kill", "-STOP", str(launcher))
    wait_until(lambda: int(system.show(AGENT_SERVICE, "MainPID")) not in (0, launcher))
    wait_until(lambda: system.show(AGENT_SERVICE, "ActiveState") == "active")
    assert system.show(AGENT_SERVICE, "NRestarts") == "1"
    assert installed.server_process() == server
    system.run("rm", "-r", f"/etc/systemd/system/{AGENT_SERVICE}.d")
    system.run("systemctl", "daemon-reload")


def test_installing_again_keeps_settings_and_owners(installed: InstalledSystem) -> None:
    installed.prepare_agent()
    archive = installed.releases.make_server("1.0.0")
    installed.install(archive, "--config", "/etc/robot.json", "--user", "robot")
    settings = installed.system.root / ROOT / "agent.json"
    window = {"start": "0 2 * * *", "duration": "3h"}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "windows": [window]}))
    said = installed.install(archive)
    assert "Kept the configuration /etc/robot.json." in said
    assert json.loads(settings.read_text())["windows"] == [window]
    assert json.loads(settings.read_text())["config"] == "/etc/robot.json"
    # The user of the server owns its configuration, but not the directory of everybody.
    owners = installed.system.run("stat", "--format=%U", "/etc", "/etc/robot.json").stdout
    assert owners.split() == ["root", "robot"]
    assert installed.system.show(SERVER_SERVICE, "User") == "robot"
    settings.write_text("{")
    assert "agent.json cannot be read" in installed.install(archive, check=False)
    installed.system.run(*AGENT, "uninstall", "--purge", "--config", "/etc/robot.json")
    assert not (installed.system.root / "etc/robot.json").exists()
    assert "robot" not in (installed.system.root / "etc/passwd").read_text()


def test_configuration_of_a_machine_that_has_joined_before_is_readable(
    installed: InstalledSystem,
) -> None:
    config = Path("/etc/cogwork/machine.json")
    installed.write(config, b"{}", 0o600)
    installed.system.run("chmod", "700", str(config.parent))
    installed.prepare_agent()
    installed.install(installed.releases.make_server("1.0.0"))
    assert installed.system.run("runuser", "-u", "cogwork", "cat", str(config)).stdout == "{}"
