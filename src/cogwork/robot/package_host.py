"""The machine's interface to its packages, independent of where they come from."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class PackageState(enum.StrEnum):
    WAITING = "waiting"
    """It has not begun yet."""
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    READY = "ready"
    FAILED = "failed"
    """It is tried again by itself."""


class PackageStatus(NamedTuple):
    name: str
    type: str
    version: str
    state: PackageState
    since: float
    reason: str
    """Why it is not ready, and what to do; empty if there is nothing to say."""
    done: int
    """Bytes of the archive that have arrived or, while it is unpacked, that are processed."""
    total: int | None
    """Bytes of the archive; None if that is not known."""


class PackageHost(Protocol):
    def statuses(self) -> Iterable[PackageStatus]: ...


class NoPackages:
    """A host without packages."""

    def statuses(self) -> Iterable[PackageStatus]:
        return ()
