"""Installs the one-file executable as a service, and removes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason
from cogwork.server.install.errors import CannotInstallService
from cogwork.server.install.service_paths import CONFIG, DATA, EXECUTABLE, SERVICE, ServicePaths
from cogwork.server.install.unit_file import format_unit
from cogwork.systemd.systemctl import Systemctl

EMPTY_CONFIG = '{\n  "components": [],\n  "services": []\n}\n'
ORIGIN = "Written by `cogwork-server --aix-install`, which replaces it when it is run again."
_TRIAL_DEADLINE = 600.0
"""Timeout in seconds for the copy to print its version, which may include unpacking itself."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ServiceInstaller:
    paths: ServicePaths
    systemctl: Systemctl
    report: Report
    """Function that receives each line of progress or advice."""

    def install(self, source: Path) -> None:
        """Install the executable `source`, or update the installed version. Raise
        CannotInstallService."""
        self._refuse_beside_agent()
        self._refuse_beside_package()
        try:
            self._install_executable(source)
            self._create_config()
            self._write_unit()
        except OSError as error:
            raise CannotInstallService(_describe(error)) from error
        self._start()
        self.report(f"To undo this, run: sudo {EXECUTABLE} --aix-uninstall")

    def uninstall(self) -> None:
        """Remove everything that `install` created except the configuration and the data."""
        self._refuse_beside_agent()
        if not self.paths.unit.exists() and not self.paths.executable.exists():
            raise CannotInstallService(
                f"there is nothing to remove: neither {EXECUTABLE} nor {self.paths.unit} exists"
            )
        self._stop()
        try:
            for path in (self.paths.unit, self.paths.executable):
                if path.exists():
                    path.unlink()
                    self.report(f"Removed {path}.")
            if self._is_systemd_running:
                self.systemctl.run("daemon-reload")
            self._remove_unpacked()
        except OSError as error:
            raise CannotInstallService(_describe(error)) from error
        self.report(
            f"Kept the configuration {CONFIG} and the data in {DATA}. "
            f"To delete them as well, run: sudo rm -r {CONFIG} {DATA}"
        )

    @property
    def _is_systemd_running(self) -> bool:
        return self.paths.running_systemd.is_dir()

    def _refuse_beside_agent(self) -> None:
        if self.paths.agent_unit.exists():
            raise CannotInstallService(
                "the agent is installed here and manages the server; update it through the agent, "
                "or remove it first with `sudo cogwork-agent uninstall`"
            )

    def _refuse_beside_package(self) -> None:
        for unit in self.paths.packaged_units:
            if unit.exists():
                raise CannotInstallService(
                    f"the Debian package cogwork is installed here, with {unit}; update it with "
                    "`sudo apt install ./cogwork_<version>_<arch>.deb`, or remove it first with "
                    "`sudo apt remove cogwork`"
                )

    def _install_executable(self, source: Path) -> None:
        target = self.paths.executable
        if target.exists() and target.samefile(source):
            self.report(f"{target} is this file already.")
            return
        replaces = target.exists()
        atomic.make_directory(target.parent, 0o755)
        fresh = target.with_name(f".{target.name}.new")
        try:
            _copy(source, fresh)
            _try(fresh, self.paths.data)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
        self.report(f"{'Replaced' if replaces else 'Installed'} {target}.")

    def _create_config(self) -> None:
        if self.paths.config.exists():
            self.report(f"Kept the configuration {self.paths.config}.")
            return
        atomic.make_directory(self.paths.config.parent, 0o755)
        atomic.write(self.paths.config, EMPTY_CONFIG.encode(), mode=0o600)
        self.report(
            f"Created an empty configuration, {self.paths.config}. "
            "Add the components of your machine to it: the server applies every change."
        )

    def _write_unit(self) -> None:
        atomic.make_directory(self.paths.unit.parent, 0o755)
        atomic.write(self.paths.unit, format_unit(EXECUTABLE, ORIGIN).encode(), mode=0o644)
        self.report(f"Wrote {self.paths.unit}.")

    def _start(self) -> None:
        if self._is_systemd_running:
            self.systemctl.run("daemon-reload")
            self.systemctl.run("enable", SERVICE)
            # `systemctl restart` waits until the server serves.
            self.systemctl.run("restart", SERVICE)
            self.report(
                "Started the service cogwork-server; it starts with the computer, too. "
                "To see its state, run: systemctl status cogwork-server"
            )
            return
        if self.systemctl.is_installed:
            self.systemctl.run("enable", SERVICE)
        self.report(
            "systemd is not running here, so nothing was started. To start the server by hand, "
            f"run: sudo env COGWORK_HOME={DATA} {EXECUTABLE} -config {CONFIG}"
        )

    def _stop(self) -> None:
        if not self.paths.unit.exists():
            return
        if self._is_systemd_running:
            self.systemctl.run("disable", "--now", SERVICE)
            self.report("Stopped the service cogwork-server.")
        elif self.systemctl.is_installed:
            self.systemctl.run("disable", SERVICE)

    def _remove_unpacked(self) -> None:
        """Remove the unpacked programs. Do this last: this process runs from them."""
        if self.paths.unpacked.exists():
            shutil.rmtree(self.paths.unpacked)
            self.report(f"Removed {self.paths.unpacked}.")


def _copy(source: Path, target: Path) -> None:
    """Copy the file and sync it to disk: after a power failure, it is either complete or
    missing."""
    with source.open("rb") as reader, target.open("wb") as writer:
        os.fchmod(writer.fileno(), 0o755)  # before writing: the umask may let others write
        shutil.copyfileobj(reader, writer, 1 << 20)
        os.fsync(writer.fileno())


def _try(executable: Path, data: Path) -> None:
    """Run the copy before it replaces a working version.

    The copy unpacks itself into the directory of the service, so that the service stops only
    briefly.
    """
    atomic.make_directory(data)
    try:
        done = subprocess.run(  # noqa: S603 - the copy of this program
            [executable, "-version"],
            env={**os.environ, "COGWORK_HOME": str(data)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRIAL_DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstallService(
            f"the copied executable did not print its version within {_TRIAL_DEADLINE:.0f}s; "
            "nothing was changed"
        ) from error
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise CannotInstallService(
            f"the copied executable does not run, and nothing was changed: {said}"
        )


def _describe(error: OSError) -> str:
    return f"cannot write {error.filename or 'the files of the service'}: {write_reason(error)}"
