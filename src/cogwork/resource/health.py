"""How a resource reports that it is unhealthy while it stays in place."""

from __future__ import annotations

from typing import Protocol


class ReportsTrouble(Protocol):
    """A resource that can lose its device and recover without being rebuilt.

    While `trouble` is a sentence, the resource is unhealthy with that sentence as the reason, and
    the resources that depend on it are not rebuilt. It is read often and must not block.
    """

    @property
    def trouble(self) -> str | None: ...
