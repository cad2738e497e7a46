"""The server as a service of a real systemd: installed, updated, killed, hung, stopped, removed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.paths import REPOSITORY
from tests.support.waiting import block_until

pytestmark = needs_systemd

SERVICE = "cogwork-server.service"
INSTALLED = "/usr/local/bin/cogwork-server"
CONFIG = "/etc/cogwork.json"
ENTRY = (
    "import sys; from pathlib import Path; from cogwork.server.main import run; "
    "run(Path(sys.argv.pop(1)))"
)
GUIDE = REPOSITORY / "docs/guides/install-on-a-machine.md"
IMPATIENT = "[Service]\nWatchdogSec=3\nRestartSec=100ms\n"
"""The numbers of the unit are for machines, and longer than a test."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedSystem]:
    with boot_systemd(tmp_path_factory.mktemp("system")) as booted:
        yield booted


@pytest.fixture(scope="module")
def download(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an executable that is this environment's server in one file."""
    file = tmp_path_factory.mktemp("download") / "cogwork-server-linux-amd64"
    command = shlex.join([sys.executable, "-c", ENTRY])
    file.write_text(f'#!/bin/sh\nexec {command} "$0" "$@"\n')
    file.chmod(0o755)
    return file


@pytest.fixture(scope="module")
def service(system: BootedSystem, download: Path) -> BootedSystem:
    """Install the service with short times. After each test, it runs as before."""
    drop_in = system.root / f"etc/systemd/system/{SERVICE}.d/test.conf"
    drop_in.parent.mkdir(parents=True, exist_ok=True)
    drop_in.write_text(IMPATIENT)
    copy_into(system, download)
    system.run(str(download), "--aix-install")
    return system


def copy_into(system: BootedSystem, file: Path) -> None:
    """An overlay need not show what changes below it after it was mounted."""
    there = system.root / file.relative_to("/")
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_bytes(file.read_bytes())
    there.chmod(0o755)


def fetch_status(system: BootedSystem) -> dict[str, object]:
    done = system.run("curl", "-s", "--max-time", "10", "http://localhost:8080/status.json")
    status: dict[str, object] = json.loads(done.stdout)
    return status


def main_process(system: BootedSystem) -> int:
    return int(system.show(SERVICE, "MainPID"))


def wait_for_restart(system: BootedSystem, before: int) -> None:
    def is_back() -> bool:
        # In this order: between the two, the old process may end, which leaves 0.
        is_new = main_process(system) not in (0, before)
        return is_new and system.show(SERVICE, "ActiveState") == "active"

    block_until(is_back)


def test_uninstalling_leaves_configuration_and_data(system: BootedSystem, download: Path) -> None:
    # Before the other tests, for which it stays installed.
    copy_into(system, download)
    said = system.run(str(download), "--aix-install").stdout
    assert said == read_block("text")
    process = main_process(system)
    said = system.run(INSTALLED, "--aix-uninstall").stdout
    assert f"Kept the configuration {CONFIG} and the data in /var/lib/cogwork." in said
    assert system.show(SERVICE, "LoadState") == "not-found"
    assert not (system.root / "proc" / str(process)).exists()
    assert not (system.root / INSTALLED.lstrip("/")).exists()
    assert (system.root / CONFIG.lstrip("/")).exists()
    done = system.run(str(download), "--aix-uninstall", check=False)
    assert (done.returncode, "there is nothing to remove" in done.stderr) == (1, True)
    system.run("rm", "-r", CONFIG, "/var/lib/cogwork")


def test_installed_server_serves_and_starts_with_the_computer(service: BootedSystem) -> None:
    # `restart` has waited for the server's own message.
    assert fetch_status(service)["state"] in ("initializing", "running")
    assert service.show(SERVICE, "ActiveState") == "active"
    assert service.show(SERVICE, "UnitFileState") == "enabled"
    config = service.root / CONFIG.lstrip("/")
    assert config.stat().st_mode & 0o777 == 0o600
    # Its state is where the unit says, not in the home directory of root.
    assert (service.root / "var/lib/cogwork/journal").is_dir()


def test_service_applies_changes_of_the_configuration(service: BootedSystem) -> None:
    (service.root / CONFIG.lstrip("/")).write_text("{}")
    block_until(lambda: not fetch_status(service)["resources"], every=0.1)
    motor = {"name": "belt", "api": "rdk:component:motor", "model": "fake"}
    (service.root / CONFIG.lstrip("/")).write_text(json.dumps({"components": [motor]}))

    def is_ready() -> bool:
        return '"ready"' in json.dumps(fetch_status(service)["resources"])

    block_until(is_ready, every=0.1)


def test_stricter_set_of_the_guide_does_not_break_the_server(service: BootedSystem) -> None:
    lines = read_block('ini title="strict.conf"').splitlines()
    # The Python of the tests may be in /tmp or in the home directory of root.
    strict = "\n".join(line for line in lines if line not in ("PrivateTmp=yes", "ProtectHome=yes"))
    (service.root / f"etc/systemd/system/{SERVICE}.d/strict.conf").write_text(strict)
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "restart", SERVICE)
    assert service.show(SERVICE, "NoNewPrivileges") == "yes"
    test_service_applies_changes_of_the_configuration(service)
    (service.root / f"etc/systemd/system/{SERVICE}.d/strict.conf").unlink()
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "restart", SERVICE)


def read_block(kind: str) -> str:
    """Return the first block of this kind in the guide."""
    return GUIDE.read_text().partition(f"\n```{kind}\n")[2].partition("```")[0]


def test_installing_again_restarts_the_service(service: BootedSystem, download: Path) -> None:
    before = main_process(service)
    (service.root / CONFIG.lstrip("/")).write_text('{"components": []}')
    said = service.run(str(download), "--aix-install").stdout
    assert f"Replaced {INSTALLED}." in said
    assert f"Kept the configuration {CONFIG}." in said
    assert main_process(service) != before
    assert service.show(SERVICE, "ActiveState") == "active"


def test_killed_server_is_started_again(service: BootedSystem) -> None:
    before = main_process(service)
    service.run("kill", "-KILL", str(before))
    wait_for_restart(service, before)
    assert fetch_status(service)


def test_hanging_server_is_started_again(service: BootedSystem) -> None:
    before = main_process(service)
    service.run("kill", "-STOP", str(before))
    wait_for_restart(service, before)
    # The process was not over by itself: its signs of life stopped.
    assert fetch_status(service)


def test_server_that_is_alive_is_left_alone(service: BootedSystem) -> None:
    before, restarts = main_process(service), service.show(SERVICE, "NRestarts")
    # Twice a sign of life, of which systemd expects one in this time.
    for _ in range(2):
        service.wait_for_sign_of_life(SERVICE)
    assert main_process(service) == before
    assert service.show(SERVICE, "NRestarts") == restarts


def test_stopping_the_service_ends_the_server_in_order(service: BootedSystem) -> None:
    service.run("systemctl", "stop", SERVICE)
    assert service.show(SERVICE, "Result") == "success"
    assert service.show(SERVICE, "ExecMainStatus") == "0"
    service.run("systemctl", "start", SERVICE)


def test_failing_start_is_reported_with_what_to_do(service: BootedSystem, download: Path) -> None:
    busy = {"network": {"bind_address": "192.0.2.1:80", "insecure_without_auth": True}}
    (service.root / CONFIG.lstrip("/")).write_text(json.dumps(busy))
    done = service.run(str(download), "--aix-install", check=False)
    assert done.returncode == 1
    assert f"`systemctl restart {SERVICE}` failed: Job for {SERVICE} failed" in done.stderr
    assert "journalctl" in done.stderr
    (service.root / CONFIG.lstrip("/")).write_text("{}")
    service.run("systemctl", "reset-failed", SERVICE)
    service.run("systemctl", "restart", SERVICE)


RESTARTING = """
import asyncio, os, sys
from cogwork.core.clock import SystemClock
from cogwork.systemd.notify import SystemdNotifier
from cogwork.systemd.notify_socket import read_notify_settings

async def main():
    notifier = SystemdNotifier(read_notify_settings(os.environ, os.getpid()), SystemClock())
    notifier.start()
    await asyncio.sleep(0.2)
    if sys.argv[1] == "first":
        notifier.report_stop(restarts=True)
        await asyncio.sleep(3)
        await notifier.aclose()
        os.execv(sys.executable, [sys.executable, "-c", os.environ["PROGRAM"], "second"])
    await asyncio.sleep(1000)

asyncio.run(main())
"""
"""Starts again as the server does for its cloud, and takes its time before."""


def test_process_that_starts_again_is_left_alone(system: BootedSystem) -> None:
    unit = "restarting.service"
    properties = ("Type=notify", "WatchdogSec=2", "TimeoutStopSec=1", "Restart=always")
    system.run(
        *("systemd-run", f"--unit={unit}", *(f"--property={each}" for each in properties)),
        *(f"--setenv=PROGRAM={RESTARTING}", sys.executable, "-c", RESTARTING, "first"),
    )
    process = int(system.show(unit, "MainPID"))
    command = system.root / f"proc/{process}/cmdline"
    block_until(lambda: command.read_bytes().endswith(b"\0second\0"))
    block_until(lambda: system.show(unit, "ActiveState") == "active")
    assert (int(system.show(unit, "MainPID")), system.show(unit, "NRestarts")) == (process, "0")
    system.run("systemctl", "stop", unit)
