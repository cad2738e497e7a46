"""Paths of an installed server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SERVICE = "cogwork-server.service"
EXECUTABLE = PurePosixPath("/usr/local/bin/cogwork-server")
CONFIG = PurePosixPath("/etc/cogwork.json")
DATA = PurePosixPath("/var/lib/cogwork")
"""The server's COGWORK_HOME. `packaging/unpack.sh` contains the same path."""


@dataclass(frozen=True, slots=True)
class ServicePaths:
    """Paths of an installation below a root directory."""

    root: Path = Path("/")

    @property
    def executable(self) -> Path:
        return self._below(EXECUTABLE)

    @property
    def config(self) -> Path:
        return self._below(CONFIG)

    @property
    def data(self) -> Path:
        return self._below(DATA)

    @property
    def unpacked(self) -> Path:
        """Directory into which the executable unpacks itself."""
        return self.data / "unpacked"

    @property
    def unit(self) -> Path:
        return self._below(PurePosixPath("/etc/systemd/system", SERVICE))

    @property
    def agent_unit(self) -> Path:
        """Unit file of the agent. It replaces `unit` when the agent is installed."""
        return self._below(PurePosixPath("/etc/systemd/system/cogwork-agent.service"))

    @property
    def packaged_units(self) -> tuple[Path, ...]:
        """Paths at which a Debian package installs its unit file."""
        directories = ("/usr/lib/systemd/system", "/lib/systemd/system")
        return tuple(self._below(PurePosixPath(each, SERVICE)) for each in directories)

    @property
    def running_systemd(self) -> Path:
        """Directory that exists while systemd runs, as in sd_booted(3)."""
        return self._below(PurePosixPath("/run/systemd/system"))

    def _below(self, path: PurePosixPath) -> Path:
        return self.root / path.relative_to("/")
