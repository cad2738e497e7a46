"""Installs the agent and a first version of the server."""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.agent_remover import AgentRemover
from cogwork.agent.installation.cloud_check import require_login
from cogwork.agent.installation.command import write_command
from cogwork.agent.installation.other_services import refuse_other_unit
from cogwork.agent.installation.predecessor import Predecessor, find_predecessors
from cogwork.agent.installation.system_user import create_user, has_user
from cogwork.agent.installation.units import (
    AGENT_SERVICE,
    DATA,
    format_agent_unit,
    format_server_script,
    format_server_unit,
)
from cogwork.agent.launcher_archive import write_launcher
from cogwork.agent.release.signature import TrustedKeys, parse_public_key
from cogwork.agent.settings import DEFAULT_CONFIG, AgentSettings
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.supervision.systemd_server import SERVICE, UNITS
from cogwork.core.files import atomic
from cogwork.core.versions.product import Product
from cogwork.systemd.systemctl import RUNNING, Systemctl, SystemctlFailed

_EMPTY_CONFIG: Final = b'{\n  "components": [],\n  "services": []\n}\n'

_POLL: Final = 0.5

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AgentInstaller:
    layout: Layout
    settings: AgentSettings
    user: str
    """The user that the server runs as."""
    systemctl: Systemctl
    report: Report
    start_timeout: float = 300.0
    """Seconds for the server to start. After that, the former service is started again."""

    def install(self, releases: Sequence[Path], keys: Sequence[Path]) -> None:
        """Install or update the agent. Raise CogworkError or OSError."""
        refuse_other_unit()
        self._check(releases, keys)
        for directory in (self.layout.root, self.layout.versions, self.layout.keys):
            atomic.make_directory(directory, 0o755)
            directory.chmod(0o755)
        self._trust(keys)
        self._install_releases(releases)
        self._require_versions()
        self._create_user()
        write_launcher(self.layout.launcher)
        self._write_settings()
        predecessors = self._find_predecessors()
        has_config = self.settings.config.exists()
        self._create_config(predecessors)
        try:
            self._take_over(predecessors)
        except BaseException:
            if predecessors:
                self._go_back(predecessors)
                if not has_config:
                    # Remove the copy, so that the next attempt copies the configuration again.
                    self.settings.config.unlink(missing_ok=True)
            raise
        self.report("To undo this, run: sudo cogwork-agent uninstall")

    def _check(self, releases: Sequence[Path], keys: Sequence[Path]) -> None:
        """Check that the releases can be installed, before anything is changed."""
        given = [_read_key(each) for each in keys]
        trusted = TrustedKeys.load(self.layout.keys).extend(given)
        for release in releases:
            Installer(self.layout, trusted).check(release)

    def _create_user(self) -> None:
        if self.user == "root" or has_user(self.user):
            return
        groups = create_user(self.user, DATA)
        self.report(f"Created the user {self.user}, in the groups {', '.join(groups)}.")

    def _trust(self, keys: Sequence[Path]) -> None:
        for key in keys:
            atomic.write(self.layout.keys / f"{key.stem}.pem", key.read_bytes(), 0o644)
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

    def _write_settings(self) -> None:
        """Write the settings. Keep entries that a person has added, such as windows."""
        try:
            settings = json.loads(self.layout.settings.read_bytes())
        except FileNotFoundError:
            settings = {}
        settings |= self.settings.model_dump(mode="json", exclude_defaults=True)
        settings["config"] = str(self.settings.config)
        text = json.dumps(settings, indent=1)
        atomic.write(self.layout.settings, text.encode() + b"\n", 0o644)
        self.report(f"Wrote {self.layout.settings}.")

    def _create_config(self, predecessors: Sequence[Predecessor]) -> None:
        config = self.settings.config
        # The server replaces the file when a user edits it on the control page, so the server's
        # user must own it. A directory with other files, such as /etc, keeps its owner.
        is_own_directory = not config.parent.exists() or config.parent == DEFAULT_CONFIG.parent
        atomic.make_directory(config.parent, 0o750)
        given = next((each for each in predecessors if each.config.exists()), None)
        if config.exists():
            _refuse_other_machine(config, given)
            said = f"Kept the configuration {config}"
        elif given is not None:
            atomic.write(config, given.config.read_bytes())
            said = f"Copied the configuration of {given.name}, {given.config}, to {config}"
        else:
            atomic.write(config, _EMPTY_CONFIG)
            said = f"Created an empty configuration, {config}"
        owned = (config.parent, config) if is_own_directory else (config,)
        for each in owned:
            # Change only what root owns: another owner may want to edit the file again. Do not
            # follow links, because the server's user may have created them.
            if each.lstat().st_uid == 0 and not each.is_symlink():
                account = pwd.getpwnam(self.user)
                os.chown(each, account.pw_uid, account.pw_gid, follow_symlinks=False)
        self.report(f"{said}.")

    def _find_predecessors(self) -> list[Predecessor]:
        """Return the services that run the machine before the agent. If systemd is not running,
        return all that are installed."""
        if (UNITS / SERVICE).exists():
            return []
        found = find_predecessors()
        return [each for each in found if self._is_used(each)] if RUNNING.is_dir() else found

    def _is_used(self, predecessor: Predecessor) -> bool:
        state = self.systemctl.show(predecessor.service, "ActiveState", "UnitFileState")
        is_stopped = state.get("ActiveState") in ("inactive", "failed")
        return not is_stopped or state.get("UnitFileState") == "enabled"

    def _take_over(self, predecessors: Sequence[Predecessor]) -> None:
        """Stop the former services, and start the agent. Raise CogworkError or OSError."""
        if predecessors:
            require_login(self.settings.config)
        # Disable units that have our unit's name now: once our unit is written to /etc, it hides
        # them.
        hidden = [each for each in predecessors if each.service == SERVICE]
        for each in predecessors:
            if RUNNING.is_dir():
                self.systemctl.run("stop", each.service)
            self.report(f"Stopped the service of {each.name}, {each.unit}.")
        self._disable(hidden)
        self._write_units()
        write_command(self.layout.root, self.report)
        self._start()
        if predecessors and RUNNING.is_dir():
            self._require_server()
        # Disable the other services last: after a power cut before this line, they start again.
        self._disable([each for each in predecessors if each not in hidden])

    def _disable(self, predecessors: Sequence[Predecessor]) -> None:
        for each in predecessors:
            self.systemctl.run("disable", each.service)
            self.report(f"Disabled the service of {each.name}.")

    def _go_back(self, predecessors: Sequence[Predecessor]) -> None:
        """Start the former services again, so that a remote machine stays reachable."""
        remover = AgentRemover(self.layout, self.settings.config, self.systemctl, self.report)
        now = ("--now",) if RUNNING.is_dir() else ()
        try:
            remover.remove_programs()
        finally:
            for each in predecessors:
                try:
                    self.systemctl.run("enable", *now, each.service)
                except SystemctlFailed as error:
                    self.report(str(error))
                else:
                    self.report(f"Started {each.service} again, which runs the machine.")

    def _write_units(self) -> None:
        agent = self.layout.current(Product.AGENT) / "bin" / "python"
        units = {
            # Resolve the link to the Python of the system: an update may remove this version's
            # environment.
            AGENT_SERVICE: format_agent_unit(agent.resolve(), self.layout.root),
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

    def _require_server(self) -> None:
        """Wait until the server is ready. Raise CannotInstallAgent."""
        if not self._starts_in_time():
            raise CannotInstallAgent(
                f"the server did not start within {self.start_timeout:g} s; to see why, run: "
                "journalctl -u cogwork-server -u cogwork-agent"
            )

    def _starts_in_time(self) -> bool:
        deadline = time.monotonic() + self.start_timeout
        while self.systemctl.show(SERVICE, "ActiveState").get("ActiveState") != "active":
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True


def _refuse_other_machine(config: Path, given: Predecessor | None) -> None:
    """Raise CannotInstallAgent if an older configuration with different content exists."""
    if given is None or given.service == SERVICE:
        return
    if config.read_bytes() != given.config.read_bytes():
        raise CannotInstallAgent(
            f"{config} already exists, and differs from {given.config}; delete the one "
            "that this machine does not use"
        )


def _read_key(path: Path) -> Ed25519PublicKey:
    try:
        return parse_public_key(path.read_bytes())
    except ValueError as error:
        raise CannotInstallAgent(f"{path} is not a public key: {error}") from None
