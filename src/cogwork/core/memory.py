"""The memory of the computer, or of the container that this process runs in."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")


def total_memory(cgroups: Path = _CGROUPS, own_group: Path = Path("/proc/self/cgroup")) -> int:
    """Return the memory limit in bytes, which this process shares with the other processes of its
    control groups."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(cgroups, own_group)])


def _limits(cgroups: Path, own_group: Path) -> list[int]:
    """Return the memory limits of the process's control group and of all parent groups."""
    try:
        line = next(each for each in own_group.read_text().splitlines() if each.startswith("0::"))
    except (OSError, StopIteration):
        return []  # not Linux, or no control groups of version 2
    group = PurePosixPath(line.removeprefix("0::").strip()).relative_to("/")
    limits = [_read(cgroups / each / "memory.max") for each in (group, *group.parents)]
    return [each for each in limits if each is not None]


def _read(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # the file does not exist, or contains "max"
        return None
