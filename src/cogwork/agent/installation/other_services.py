"""Services of the same name that something else has installed: a Debian package, or a person."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cogwork.agent.errors import CannotInstallAgent
from cogwork.agent.installation.units import ORIGIN
from cogwork.agent.supervision.systemd_server import SERVICE, UNITS

PACKAGED_CONFIG: Final = Path("/etc/cogwork.json")
_PACKAGED: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))


def find_packaged_unit() -> Path | None:
    """Return the unit of the server that a Debian package has installed."""
    return next((each / SERVICE for each in _PACKAGED if (each / SERVICE).exists()), None)


def is_ours(unit: Path) -> bool:
    """Return whether `cogwork-agent install` has written the unit."""
    try:
        return ORIGIN in unit.read_text(errors="replace")
    except OSError:
        return False


def refuse_other_unit() -> None:
    """Raise CannotInstallAgent if there is a unit that `install` would overwrite."""
    unit = UNITS / SERVICE
    if unit.is_file() and not is_ours(unit):
        raise CannotInstallAgent(
            f"{unit} is there already, and the agent has not written it; remove that service "
            "first. If the one-file executable has installed it, run: "
            "sudo /usr/local/bin/cogwork-server --aix-uninstall"
        )
