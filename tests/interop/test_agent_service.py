"""The agent under a real systemd: installed, updated, killed, removed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.releases import ReleaseMaker
from tests.sizes import limit

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
        slot = Path("/") / ROOT / "versions" / f"agent-{__version__}"
        script = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
        self.write(slot / "bin" / "python", script.encode(), 0o755)
        link = self.system.root / ROOT / "current-agent"
        link.symlink_to(f"versions/agent-{__version__}")

    def install(self, archive: Path) -> str:
        self.write(archive, archive.read_bytes())
        self.write(self.directory / "key.pem", self.releases.public_key())
        return self.system.run(
            # The Python of the tests may be in the home directory of root.
            *(*AGENT, "install", "--user", "root", "--release", str(archive), "--key"),
            *(str(self.directory / "key.pem"), "--updates", str(self.directory)),
        ).stdout

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


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + limit(15)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_agent_lives_its_life(installed: InstalledSystem) -> None:
    before = installed.list_files()
    installed.prepare_agent()
    print(installed.install(installed.releases.make_server("1.0.0")))
    installed.offer(installed.releases.make_server("1.0.0"), "1.0.0")
    installed.set_quick_times()
    wait_until(lambda: installed.running_version() == "1.0.0")

    process = installed.server_process()
    installed.system.run("systemctl", "kill", "--signal=KILL", AGENT_SERVICE)
    wait_until(lambda: installed.system.show(AGENT_SERVICE, "NRestarts") != "0")
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
