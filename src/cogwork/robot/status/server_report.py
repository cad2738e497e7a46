"""What the status tells about the server itself. The parts of the server fill it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cogwork.config.source.config_report import ConfigReport
from cogwork.robot.status.server_load import ServerLoad
from cogwork.robot.status.update_file import UpdateFile
from cogwork.serving.tls_report import TlsReport


class MaintenanceDenial(NamedTuple):
    reason: str
    since: float
    """Time of the first of the consecutive checks with this result."""


@dataclass(slots=True)
class ServerReport:
    load: ServerLoad
    updates: UpdateFile
    config: ConfigReport | None = None
    """The verdict on the newest version of the configuration file, even if it is refused."""
    tls: TlsReport | None = None
    """None without TLS."""
    maintenance_denial: MaintenanceDenial | None = None
    """The last result of the maintenance check; None if it was not denied."""
    list_cloud_notices: Callable[[], Sequence[str]] = tuple
    """Returns what is wrong with how the machine is connected to its cloud."""
