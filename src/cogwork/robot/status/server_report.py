"""The section of the status about the server itself. The parts of the server write to it."""

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
    """Time of the first denied check since maintenance was last allowed."""
    checked_at: float
    """Monotonic time of the latest check."""


@dataclass(slots=True)
class ServerReport:
    load: ServerLoad
    updates: UpdateFile
    config: ConfigReport | None = None
    """Result of loading the latest configuration file, even if it was refused."""
    tls: TlsReport | None = None
    """State of TLS; None without TLS."""
    maintenance_denial: MaintenanceDenial | None = None
    """The denial of the latest maintenance check; None if maintenance was allowed."""
    list_cloud_notices: Callable[[], Sequence[str]] = tuple
    """Function that returns the problems with the connection to the cloud."""
