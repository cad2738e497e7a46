"""Memory and CPU use of running processes, from `/proc`."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_MAX_PROCESSES = 100
"""Maximum processes that are counted for one root."""
_USER_TIME, _SYSTEM_TIME, _START_TIME, _RESIDENT_PAGES = 11, 12, 19, 21
"""Indexes of fields in `stat`, counted from the program name."""


class ProcessUse(NamedTuple):
    memory_bytes: int
    """Resident memory. Memory that processes share is counted for each process."""
    cpu_seconds: float
    """CPU time on all cores since the start of each process."""
    uptime_seconds: float
    """Seconds since the start of the root process."""


def read_process_tree(root: int, without: Collection[int] = ()) -> ProcessUse | None:
    """Return the use of a process and its descendants; None if it has ended or `/proc` is missing.

    The descendants in `without` do not count, and neither do their own descendants.
    """
    first = _read_stat(root)
    if first is None:
        return None
    memory, cpu = first.memory_bytes, first.cpu_seconds
    waiting, count = [root], 1
    while waiting:
        for pid in _list_children(waiting.pop()):
            if pid in without or count >= _MAX_PROCESSES:
                continue
            if (stat := _read_stat(pid)) is not None:
                memory, cpu, count = memory + stat.memory_bytes, cpu + stat.cpu_seconds, count + 1
                waiting.append(pid)
    return ProcessUse(memory, cpu, first.uptime_seconds)


def _read_stat(pid: int) -> ProcessUse | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The program name ends at the last parenthesis, because it may contain parentheses itself.
    fields = text.rpartition(") ")[2].split()
    if len(fields) <= _RESIDENT_PAGES:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessUse(
        int(fields[_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE"),
        (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / ticks,
        max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_START_TIME]) / ticks),
    )


def _list_children(pid: int) -> Iterator[int]:
    """Yield the child processes of every thread of the process."""
    threads = f"{_PROC}/{pid}/task"
    try:
        for thread in os.listdir(threads):  # noqa: PTH208 - a path for each thread costs more
            with open(f"{threads}/{thread}/children", encoding="ascii") as listing:  # noqa: PTH123
                yield from map(int, listing.read().split())
    except OSError:
        return  # the process ended, or the kernel does not list children
