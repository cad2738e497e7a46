"""How a resource reports that it is unhealthy while it stays in place."""

from __future__ import annotations

from typing import Protocol


class ReportsFault(Protocol):
    """A resource that can lose its device and recover without being rebuilt.

    `fault` is one sentence about what is wrong, or None. While it is set, the resource is reported
    as unhealthy for that reason, but neither it nor its dependents are rebuilt. It is read often,
    so reading it must be cheap.
    """

    @property
    def fault(self) -> str | None: ...
