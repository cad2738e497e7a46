"""Installs the agent with a first version of the server, and removes both again."""

from __future__ import annotations

import grp
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.units import (
    AGENT_SERVICE,
    format_agent_unit,
    format_server_script,
    format_server_unit,
)
from cogwork.agent.launcher_archive import write_launcher
from cogwork.agent.release.signature import TrustedKeys, parse_public_key
from cogwork.agent.settings import AgentSettings
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.supervision.systemd_server import SERVICE, UNITS
from cogwork.core import atomic
from cogwork.core.product import Product
from cogwork.systemd.systemctl import RUNNING, Systemctl

DATA: Final = Path("/var/lib/cogwork")
_EMPTY_CONFIG: Final = b'{\n  "components": [],\n  "services": []\n}\n'
_DEVICE_GROUPS: Final = ("audio", "dialout", "gpio", "i2c", "input", "plugdev", "spi", "video")
_COMMAND_TIMEOUT: Final = 60.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AgentInstaller:
    layout: Layout
    settings: AgentSettings
    user: str
    """The user that the server runs as."""
    systemctl: Systemctl
    report: Report

    def install(self, releases: Sequence[Path], keys: Sequence[Path]) -> None:
        """Install or update. Raise CogworkError or OSError."""
        self._create_user()
        for directory in (self.layout.root, self.layout.versions, self.layout.keys):
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            directory.chmod(0o755)
        self._trust(keys)
        self._install_releases(releases)
        self._require_versions()
        write_launcher(self.layout.launcher)
        text = self.settings.model_dump_json(exclude_defaults=True, indent=1)
        atomic.write(self.layout.settings, text.encode() + b"\n", 0o644)
        self.report(f"Wrote {self.layout.settings}.")
        self._create_config()
        self._write_units()
        self._start()
        self.report("To undo this, run: sudo cogwork-agent uninstall")

    def uninstall(self) -> None:
        """Remove everything but the configuration and the data."""
        is_running = RUNNING.is_dir()
        for service in (AGENT_SERVICE, SERVICE):
            unit = UNITS / service
            if unit.exists():
                if is_running:
                    self.systemctl.run("stop", service)
                self.systemctl.run("disable", service)
                unit.unlink()
                self.report(f"Removed {unit}.")
        if is_running:
            self.systemctl.run("daemon-reload")
        if self.layout.root.exists():
            shutil.rmtree(self.layout.root)
            self.report(f"Removed {self.layout.root}.")
        kept = [str(each) for each in (self.settings.config, DATA) if each.exists()]
        if kept:
            self.report(
                f"Kept the configuration and the data. To delete them as well, run: sudo rm -r "
                f"{' '.join(kept)}"
            )

    def _create_user(self) -> None:
        if self.user == "root" or _has_user(self.user):
            return
        groups = [each for each in _DEVICE_GROUPS if _has_group(each)]
        _run(
            "useradd",
            "--system",
            "--user-group",
            "--home-dir",
            str(DATA),
            "--no-create-home",
            "--shell",
            "/usr/sbin/nologin",
            "--groups",
            ",".join(groups),
            self.user,
        )
        self.report(f"Created the user {self.user}, in the groups {', '.join(groups)}.")

    def _trust(self, keys: Sequence[Path]) -> None:
        for key in keys:
            data = key.read_bytes()
            try:
                parse_public_key(data)
            except ValueError as error:
                raise CannotInstallAgent(f"{key} is not a public key: {error}") from None
            atomic.write(self.layout.keys / f"{key.stem}.pem", data, 0o644)
            self.report(f"Trusted the releases that {key} has signed.")

    def _install_releases(self, releases: Sequence[Path]) -> None:
        installer = Installer(self.layout, TrustedKeys.load(self.layout.keys))
        for release in releases:
            manifest = installer.install(release, lambda _: None)
            if self.layout.current_version(manifest.product) is None:
                self.layout.switch(manifest.product, manifest.version)
            self.report(f"Installed {manifest.product} {manifest.version}.")

    def _require_versions(self) -> None:
        missing = [each for each in Product if self.layout.current_version(each) is None]
        if missing:
            raise CannotInstallAgent(
                f"no version of the {' and the '.join(missing)} is installed; give the release "
                "archives with --release"
            )

    def _create_config(self) -> None:
        config = self.settings.config
        if config.exists():
            self.report(f"Kept the configuration {config}.")
            return
        # The server replaces the file when someone edits it on the control page.
        config.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        atomic.write(config, _EMPTY_CONFIG)
        if self.user != "root":
            for each in (config.parent, config):
                shutil.chown(each, self.user, self.user)
        self.report(f"Created an empty configuration, {config}.")

    def _write_units(self) -> None:
        # The one that the versions were installed with.
        python = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # noqa: SLF001
        units = {
            AGENT_SERVICE: format_agent_unit(python, self.layout.root),
            SERVICE: format_server_unit(self.layout.root, DATA, self.user),
        }
        script = format_server_script(self.layout.root, self.settings.config)
        atomic.write(self.layout.root / "run-server", script.encode(), 0o755)
        for name, text in units.items():
            atomic.write(UNITS / name, text.encode(), 0o644)
            self.report(f"Wrote {UNITS / name}.")

    def _start(self) -> None:
        if not RUNNING.is_dir():
            self.report(
                "systemd is not running here, so nothing was started. To start the agent by hand, "
                f"run: sudo python3 -I {self.layout.launcher} {self.layout.root}"
            )
            return
        self.systemctl.run("daemon-reload")
        self.systemctl.run("enable", AGENT_SERVICE)
        self.systemctl.run("restart", AGENT_SERVICE)
        self.report(
            "Started the service cogwork-agent, which starts the server. To see what it does, run: "
            "cogwork-agent status"
        )


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _has_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and a checked name
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallAgent(f"cannot run {command[0]}: {error}") from None
    if done.returncode != 0:
        raise CannotInstallAgent(f"{command[0]} failed: {done.stderr.strip()}")
