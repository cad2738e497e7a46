"""The health of resources that recover from a fault without being rebuilt."""

from __future__ import annotations

from typing import Protocol


class ReportsFault(Protocol):
    """A resource that can lose its device and recover without being rebuilt.

    `fault` is one sentence about the problem, or None. While it is set, the resource is reported as
    unhealthy for that reason, but neither it nor its dependents are rebuilt. `fault` is read often,
    so reading it must be cheap.
    """

    @property
    def fault(self) -> str | None: ...
