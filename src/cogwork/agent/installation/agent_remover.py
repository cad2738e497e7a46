"""Removes what `AgentInstaller` has installed."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.command import remove_command
from cogwork.agent.installation.other_services import is_ours
from cogwork.agent.installation.predecessor import find_predecessors
from cogwork.agent.installation.system_user import delete_users
from cogwork.agent.installation.units import AGENT_SERVICE, DATA
from cogwork.agent.settings import DEFAULT_CONFIG
from cogwork.agent.slots.layout import Layout
from cogwork.agent.supervision.systemd_server import SERVICE, UNITS
from cogwork.systemd.systemctl import RUNNING, Systemctl


@dataclass(frozen=True, slots=True)
class AgentRemover:
    layout: Layout
    config: Path
    systemctl: Systemctl
    report: Callable[[str], None]
    """Called with one line of text for each step and each instruction."""

    def uninstall(self, *, purge: bool) -> None:
        """Remove the agent and the server; with `purge`, also their configuration and data.

        Raise CogworkError or OSError.
        """
        if purge:
            self._refuse_data_of_package()
        replaced = find_predecessors() if is_ours(UNITS / SERVICE) else []
        self.remove_programs()
        if purge:
            self._purge()
        else:
            self._report_kept()
        for each in replaced:
            self.report(
                f"The service of {each.name} is disabled. To use it again, run: "
                f"sudo systemctl enable --now {each.unit.stem}"
            )

    def remove_programs(self) -> None:
        """Remove the services, the versions and the command. Raise CogworkError or OSError."""
        for service in (AGENT_SERVICE, SERVICE):
            self._remove_service(service)
        if RUNNING.is_dir():
            self.systemctl.run("daemon-reload")
        remove_command(self.report)
        if self.layout.root.exists():
            shutil.rmtree(self.layout.root)
            self.report(f"Removed {self.layout.root}.")

    def _refuse_data_of_package(self) -> None:
        is_installed = self.layout.root.exists() or is_ours(UNITS / SERVICE)
        if not is_installed and any(each.service == SERVICE for each in find_predecessors()):
            raise CannotInstallAgent(
                f"the agent is not installed in {self.layout.root}, and {DATA} belongs to the "
                "Debian package; to delete it, run: sudo apt purge cogwork"
            )

    def _remove_service(self, service: str) -> None:
        unit = UNITS / service
        if is_ours(unit):
            if RUNNING.is_dir():
                self.systemctl.run("stop", service)
            self.systemctl.run("disable", service)
            unit.unlink()
            self.report(f"Removed {unit}.")

    def _purge(self) -> None:
        self.config.unlink(missing_ok=True)
        # This call fails if the directory, such as /etc, contains other files. Then keep it.
        with contextlib.suppress(OSError):
            self.config.parent.rmdir()
        shutil.rmtree(DATA, ignore_errors=True)
        self.report(f"Deleted the configuration {self.config} and the data in {DATA}.")
        for user in delete_users(DATA):
            self.report(f"Deleted the user {user}.")

    def _report_kept(self) -> None:
        kept = [str(each) for each in (self.config, DATA) if each.exists()]
        if kept:
            option = "" if self.config == DEFAULT_CONFIG else f" --config {self.config}"
            self.report(
                f"Kept {' and '.join(kept)}. To delete the configuration, the data and the user "
                f"as well, run: sudo cogwork-agent uninstall --purge{option}"
            )
