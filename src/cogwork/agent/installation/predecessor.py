"""The service that runs the machine before the agent: another agent, or the Debian package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.agent.supervision.systemd_server import SERVICE, UNITS

_OTHER_AGENT: Final = "viam-agent.service"
_PACKAGED: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
_INSTALLED: Final = (UNITS, Path("/usr/local/lib/systemd/system"), *_PACKAGED)
_OTHER_CONFIG: Final = Path("/etc/viam.json")
_PACKAGED_CONFIG: Final = Path("/etc/cogwork.json")


@dataclass(frozen=True, slots=True)
class Predecessor:
    name: str
    """The name of the service in messages."""
    unit: Path
    config: Path
    """The path of the machine's configuration. The file may be missing."""

    @property
    def service(self) -> str:
        return self.unit.name


def find_predecessors() -> list[Predecessor]:
    """Return the installed services. If several have a configuration, the first of these
    configurations is used."""
    found = []
    if unit := _find_unit(_OTHER_AGENT, _INSTALLED):
        found.append(Predecessor("the other agent", unit, _OTHER_CONFIG))
    if unit := _find_unit(SERVICE, _PACKAGED):
        found.append(Predecessor("the Debian package", unit, _PACKAGED_CONFIG))
    return found


def _find_unit(service: str, directories: tuple[Path, ...]) -> Path | None:
    return next((each / service for each in directories if (each / service).exists()), None)
