"""The limits of a cloud's disk usage.

Logs and packages leave a reserve that only the records may use. So even if machines fill the rest
of the disk, owners can change configurations and remove keys.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from cogwork.core.errors import CogworkError

_MIN_RESERVE: Final = 32 << 20
_MAX_RESERVE: Final = 1 << 30
_RESERVED_PART: Final = 0.1


class DiskLow(CogworkError):
    """The disk has no more space for logs and packages."""

    status = "UNAVAILABLE"


class Space(NamedTuple):
    total: int
    free: int

    @property
    def reserve(self) -> int:
        """Bytes that logs and packages leave free."""
        return min(max(int(self.total * _RESERVED_PART), _MIN_RESERVE), _MAX_RESERVE)

    @property
    def share(self) -> float:
        """The allowed fraction of the log rates: 1 with enough space, 0 at the reserve.

        The fraction decreases when less than twice the reserve is free. So the disk fills ever more
        slowly, and machines with few log lines are served longer than those with many.
        """
        return min(max((self.free - self.reserve) / self.reserve, 0.0), 1.0)

    def __str__(self) -> str:
        return f"{_mebibytes(self.free)} of {_mebibytes(self.total)} are left"


def measure_space(path: Path) -> Space:
    usage = shutil.disk_usage(path)
    return Space(usage.total, usage.free)


class DiskSpace:
    """The space on the disk of a directory. Threads may use it."""

    def __init__(self, path: Path, measure: Callable[[Path], Space] = measure_space) -> None:
        self._path = path
        self._measure = measure
        self.last = measure(path)
        """The result of the last measurement."""

    def measure(self) -> Space:
        self.last = self._measure(self._path)
        return self.last

    def require(self, size: int) -> None:
        """Measure the space. Raise DiskLow if storing `size` more bytes would use the reserve."""
        _require(self.measure(), size)

    def require_any(self) -> None:
        """Raise DiskLow if the reserve was in use at the last measurement."""
        _require(self.last, 0)


def _require(space: Space, size: int) -> None:
    if space.free - size < space.reserve:
        raise DiskLow(
            f"the disk of the cloud is almost full: {space}, and {_mebibytes(space.reserve)} are "
            "reserved for records; the operator of the cloud must free space or use a larger disk"
        )


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
