"""What resources report about themselves: faults, and settings that they ignore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ReportsFault(Protocol):
    """A resource that can lose its device and recover without being rebuilt.

    `fault` is one sentence about the problem, or None. While it is set, the resource is reported as
    unhealthy for that reason, but neither it nor its dependents are rebuilt. `fault` is read often,
    so reading it must be cheap.
    """

    @property
    def fault(self) -> str | None: ...


class ReportsIgnoredSettings(Protocol):
    """A resource that runs, but finds while it is built that some settings have no effect.

    The status shows each sentence beside the settings that the check of the configuration found.
    """

    @property
    def ignored_settings(self) -> Sequence[str]: ...
