"""Installing below a temporary root, with the real `systemctl --root` where there is one."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry
from cogwork.server.install.errors import CannotInstallService
from cogwork.server.install.service_installer import EMPTY_CONFIG, ServiceInstaller
from cogwork.server.install.service_paths import ServicePaths
from cogwork.systemd.systemctl import Systemctl, SystemctlFailed

SERVICE = "cogwork-server.service"


@dataclass
class Computer:
    root: Path
    commands: Path
    """What `systemctl` was called with, a line for each call."""
    systemctl: Systemctl
    said: list[str] = field(default_factory=list)

    @property
    def installer(self) -> ServiceInstaller:
        return ServiceInstaller(ServicePaths(self.root), self.systemctl, self.said.append)

    @property
    def executable(self) -> Path:
        return self.root / "usr/local/bin/cogwork-server"

    @property
    def config(self) -> Path:
        return self.root / "etc/cogwork.json"

    @property
    def calls(self) -> list[str]:
        """Return the calls of `systemctl` since the last time, and forget them."""
        calls = self.commands.read_text().splitlines() if self.commands.exists() else []
        self.commands.unlink(missing_ok=True)
        return calls

    def start_systemd(self) -> None:
        (self.root / "run/systemd/system").mkdir(parents=True)

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_symlink() or path.is_file()
        }


def write_program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    """Return a computer whose `systemctl` is a program that notes its arguments."""
    commands, root = tmp_path / "commands", tmp_path / "root"
    root.mkdir()
    note = f'shift; echo "$@" >> {shlex.quote(str(commands))}; [ ! -e {tmp_path}/broken ] ||'
    failing = "{ echo Job failed. See the journal. >&2; exit 1; }"
    program = write_program(tmp_path / "systemctl", f"{note} {failing}")
    return Computer(root, commands, Systemctl(root, str(program)))


@pytest.fixture
def download(tmp_path: Path) -> Path:
    """Return a one-file executable, as small as it can be: it unpacks itself into its home."""
    unpack = 'mkdir -p "$COGWORK_HOME/unpacked" && echo "$1" >> "$COGWORK_HOME/unpacked/server-1"'
    return write_program(tmp_path / "cogwork-server-linux-amd64", unpack)


class TestInstall:
    def test_writes_executable_configuration_and_unit(
        self, computer: Computer, download: Path
    ) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        assert computer.files() == {
            "usr/local/bin/cogwork-server",
            "etc/cogwork.json",
            "etc/systemd/system/cogwork-server.service",
            "var/lib/cogwork/unpacked/server-1",
        }
        assert computer.executable.read_bytes() == download.read_bytes()
        assert computer.executable.stat().st_mode & 0o777 == 0o755
        assert computer.config.stat().st_mode & 0o777 == 0o600
        assert (computer.root / "var/lib/cogwork").stat().st_mode & 0o777 == 0o700
        unit = (computer.root / "etc/systemd/system" / SERVICE).read_text()
        line = "ExecStart=/usr/local/bin/cogwork-server -config /etc/cogwork.json"
        assert line in unit.splitlines()
        assert computer.calls == ["daemon-reload", f"enable {SERVICE}", f"restart {SERVICE}"]

    def test_says_what_it_did_and_how_to_undo_it(self, computer: Computer, download: Path) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        assert [line.replace(str(computer.root), "") for line in computer.said] == [
            "Installed /usr/local/bin/cogwork-server.",
            "Created an empty configuration, /etc/cogwork.json. Add the components of your "
            "machine to it: the server applies every change.",
            "Wrote /etc/systemd/system/cogwork-server.service.",
            "Started the service cogwork-server; it starts with the computer, too. To see its "
            "state, run: systemctl status cogwork-server",
            "To undo this, run: sudo /usr/local/bin/cogwork-server --aix-uninstall",
        ]

    def test_copy_runs_with_the_home_of_the_service_before_it_is_installed(
        self, computer: Computer, download: Path
    ) -> None:
        computer.installer.install(download)
        unpacked = computer.root / "var/lib/cogwork/unpacked/server-1"
        assert unpacked.read_text() == "-version\n"

    def test_without_systemd_says_how_to_start_the_server(
        self, computer: Computer, download: Path
    ) -> None:
        computer.installer.install(download)
        assert computer.calls == [f"enable {SERVICE}"]
        assert computer.said[-2] == (
            "systemd is not running here, so nothing was started. To start the server by hand, "
            "run: sudo env COGWORK_HOME=/var/lib/cogwork /usr/local/bin/cogwork-server "
            "-config /etc/cogwork.json"
        )

    def test_without_systemctl_the_files_are_written(
        self, computer: Computer, download: Path
    ) -> None:
        computer.systemctl = Systemctl(computer.root, "no-such-systemctl")
        computer.installer.install(download)
        assert "systemd is not running here" in computer.said[-2]
        assert (computer.root / "etc/systemd/system" / SERVICE).exists()

    def test_empty_configuration_is_valid(self) -> None:
        context = LoadContext(Registry(builtin_models()), Path("/home/cog"), {})
        assert load(EMPTY_CONFIG, context).diagnostics == ()

    def test_systemctl_failure_is_reported(
        self, computer: Computer, download: Path, tmp_path: Path
    ) -> None:
        computer.start_systemd()
        (tmp_path / "broken").touch()
        with pytest.raises(SystemctlFailed, match="daemon-reload` failed: Job failed"):
            computer.installer.install(download)

    @pytest.mark.parametrize("directory", ["usr/lib/systemd/system", "lib/systemd/system"])
    def test_refuses_beside_the_debian_package(
        self, computer: Computer, download: Path, directory: str
    ) -> None:
        unit = computer.root / directory / SERVICE
        unit.parent.mkdir(parents=True)
        unit.touch()
        before = computer.files()
        with pytest.raises(
            CannotInstallService, match="the Debian package cogwork is installed here"
        ):
            computer.installer.install(download)
        assert computer.files() == before

    def test_refuses_beside_the_agent(self, computer: Computer, download: Path) -> None:
        units = computer.root / "etc/systemd/system"
        units.mkdir(parents=True)
        for name in (SERVICE, "cogwork-agent.service"):
            (units / name).write_text("# of the agent")
        before = computer.files()
        with pytest.raises(CannotInstallService, match="the agent is installed here"):
            computer.installer.install(download)
        with pytest.raises(CannotInstallService, match="the agent is installed here"):
            computer.installer.uninstall()
        assert computer.files() == before

    def test_full_or_read_only_place_is_reported(self, computer: Computer, download: Path) -> None:
        (computer.root / "usr").write_text("not a directory")
        with pytest.raises(CannotInstallService, match=r"cannot write .*/usr.*: "):
            computer.installer.install(download)


class TestUpdate:
    def test_replaces_the_executable_and_keeps_the_configuration(
        self, computer: Computer, download: Path
    ) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        computer.config.write_text('{"components": []}')
        inode = computer.executable.stat().st_ino
        computer.said.clear()
        assert computer.calls
        write_program(download, "exit 0 # a newer version")
        with computer.executable.open("rb") as running:
            computer.installer.install(download)
            # A process that runs the old file keeps it.
            assert b"newer" not in running.read()
        assert "newer version" in computer.executable.read_text()
        assert computer.executable.stat().st_ino != inode
        assert computer.config.read_text() == '{"components": []}'
        assert computer.calls == ["daemon-reload", f"enable {SERVICE}", f"restart {SERVICE}"]
        assert computer.said[0] == f"Replaced {computer.executable}."

    def test_version_that_does_not_run_leaves_the_old_one(
        self, computer: Computer, download: Path
    ) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        before = computer.files(), computer.executable.read_bytes(), computer.calls
        write_program(download, "echo GLIBC_2.99 not found >&2; exit 127")
        with pytest.raises(CannotInstallService) as caught:
            computer.installer.install(download)
        assert str(caught.value) == (
            "the copied executable does not run, and nothing was changed: GLIBC_2.99 not found"
        )
        assert (computer.files(), computer.executable.read_bytes()) == before[:2]
        assert computer.calls == []

    def test_installed_file_can_install_itself_again(
        self, computer: Computer, download: Path
    ) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        computer.said.clear()
        (computer.root / "etc/systemd/system" / SERVICE).write_text("damaged")
        computer.installer.install(computer.executable)
        assert computer.said[0] == f"{computer.executable} is this file already."
        assert "damaged" not in (computer.root / "etc/systemd/system" / SERVICE).read_text()


class TestUninstall:
    def test_removes_all_but_configuration_and_data(
        self, computer: Computer, download: Path
    ) -> None:
        computer.start_systemd()
        computer.installer.install(download)
        journal = computer.root / "var/lib/cogwork/journal/m.jsonl"
        journal.parent.mkdir()
        journal.touch()
        assert computer.calls
        computer.said.clear()
        computer.installer.uninstall()
        assert computer.files() == {"etc/cogwork.json", "var/lib/cogwork/journal/m.jsonl"}
        assert computer.calls == [f"disable --now {SERVICE}", "daemon-reload"]
        assert computer.said[-1] == (
            "Kept the configuration /etc/cogwork.json and the data in /var/lib/cogwork. "
            "To delete them as well, run: sudo rm -r /etc/cogwork.json /var/lib/cogwork"
        )

    def test_without_systemd_removes_the_files(self, computer: Computer, download: Path) -> None:
        computer.installer.install(download)
        assert computer.calls
        computer.installer.uninstall()
        assert computer.files() == {"etc/cogwork.json"}
        assert computer.calls == [f"disable {SERVICE}"]

    def test_nothing_to_remove_is_an_error(self, computer: Computer) -> None:
        with pytest.raises(CannotInstallService, match="there is nothing to remove"):
            computer.installer.uninstall()


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="systemctl is not installed")
def test_real_systemctl_enables_and_disables_the_service(tmp_path: Path, download: Path) -> None:
    installer = ServiceInstaller(
        ServicePaths(tmp_path / "root"), Systemctl(tmp_path / "root"), print
    )
    installer.paths.root.mkdir()
    installer.install(download)
    link = installer.paths.unit.parent / "multi-user.target.wants" / SERVICE
    assert link.readlink() == Path("/etc/systemd/system", SERVICE)
    installer.uninstall()
    assert not link.is_symlink()


def test_missing_systemctl_is_reported() -> None:
    with pytest.raises(SystemctlFailed, match="cannot run `no-such-systemctl enable x`: No such"):
        Systemctl(program="no-such-systemctl").run("enable", "x")
