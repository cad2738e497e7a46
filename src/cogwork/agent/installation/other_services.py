"""Detection of systemd units that the agent has not written."""

from __future__ import annotations

from pathlib import Path

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.units import ORIGIN
from cogwork.agent.supervision.systemd_server import SERVICE, UNITS


def is_ours(unit: Path) -> bool:
    """Return True if `cogwork-agent install` has written the file."""
    try:
        return ORIGIN in unit.read_text(errors="replace")
    except OSError:
        return False


def refuse_other_unit() -> None:
    """Raise CannotInstallAgent if `install` would overwrite the unit of another program."""
    unit = UNITS / SERVICE
    if unit.is_file() and not is_ours(unit):
        raise CannotInstallAgent(
            f"{unit} already exists, and the agent has not written it; remove that service "
            "first. If the one-file executable has installed it, run: "
            "sudo /usr/local/bin/cogwork-server --aix-uninstall"
        )
