"""Ends the processes that a killed server left behind. They have a mark in their environment."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from cogwork.core.clock import Clock
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import run_in_thread
from cogwork.subprocesses.environment import HOME_VARIABLE
from cogwork.subprocesses.orphans import (
    MARK_VARIABLE,
    process_identity,
    read_environment,
    signal_process,
)

_SEARCH_TIMEOUT = 5.0
"""Timeout in seconds for the search: reading the environment of a process may block."""
_KILL_DELAY = 3.0
"""Seconds from SIGTERM to SIGKILL."""
_POLL_INTERVAL = 0.05
_PROC = Path("/proc")

_log = logging.getLogger("rdk.modmanager")


async def end_leftovers(home: Path, clock: Clock) -> set[int]:
    """End the processes that a killed server left behind, and return their PIDs.

    Usually, the reaper of the killed server has already ended them, unless it was killed as well.
    Processes of servers with another `home` are not touched.
    """
    left = ended = await _find_with_timeout(home)
    if not left:
        return set()
    _log.warning(
        "ending %d processes left behind by a killed server: %s", len(left), _format_pids(left)
    )
    _signal_all(left, signal.SIGTERM, signal.SIGCONT)
    deadline = clock.monotonic() + _KILL_DELAY
    while left and clock.monotonic() < deadline:
        await clock.sleep(_POLL_INTERVAL)
        left = left & await _find_with_timeout(home)
    _signal_all(left, signal.SIGKILL)
    return ended


async def _find_with_timeout(home: Path) -> set[int]:
    try:
        return await run_in_thread("find leftovers", _SEARCH_TIMEOUT, find_leftovers, home)
    except TimeoutError:
        return set()
    except OSError as error:
        _log.warning("cannot look for processes of a killed server: %s", os_reason(error))
        return set()


def find_leftovers(home: Path) -> set[int]:
    """Return the processes that a dead server with the same home has started.

    Only processes of this user count, except if this user is root.
    """
    ours = set(os.environ.get(MARK_VARIABLE, "").split())
    namespace = _pid_namespace("self")
    found = set()
    for entry in _PROC.glob("[0-9]*"):
        pid = int(entry.name)
        # Skip processes in other containers, where PIDs have a different meaning.
        if os.getuid() in (0, _owner(entry)) and _pid_namespace(entry.name) == namespace:
            environment = read_environment(pid)
            marks = set(environment.get(MARK_VARIABLE, "").split()) - ours
            if environment.get(HOME_VARIABLE) == str(home) and any(map(_is_stale, marks)):
                found.add(pid)
    return found


def _is_stale(mark: str) -> bool:
    server, _, _ = mark.rpartition(".")
    pid, dot, _ = server.partition(".")
    return bool(dot) and pid.isascii() and pid.isdigit() and process_identity(int(pid)) != server


def _owner(entry: Path) -> int:
    try:
        return entry.stat().st_uid
    except OSError:
        return -1


def _pid_namespace(process: str) -> str | None:
    try:
        return str((_PROC / process / "ns" / "pid").readlink())
    except OSError:
        return None


def _signal_all(pids: Iterable[int], *numbers: signal.Signals) -> None:
    for number in numbers:
        for pid in pids:
            signal_process(pid, number)


def _format_pids(pids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(pids)))
