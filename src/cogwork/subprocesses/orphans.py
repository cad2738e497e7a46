"""Orphaned processes: the server adopts them, so that it can find and reap them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK_VARIABLE = "COGWORK_CHILD"
"""Environment variable that marks descendants of a child. It contains one word for each such child
among the process and its ancestors. The word consists of a token and the identity of the server
that started the child."""

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PROC = Path("/proc")
_START_TIME_FIELD = 19
"""Index of the start time in `stat`, counted from the program name."""


def adopt_orphans(adopt: bool = True) -> bool:
    """Make this process the subreaper of its descendants: orphans become its children.

    Return whether that worked; only Linux supports it.
    """
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0) == 0)
    return False


def is_adopting_orphans() -> bool:
    if os.getpid() == 1:
        return True
    value = ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    return value.value != 0


def find_strays(session: int, mark: str) -> set[int]:
    """Return the adopted children that belong to the session or carry its mark.

    The mark is in the environment, which processes inherit. Reading it may block if a process hangs
    in the kernel, so call this in a thread.
    """
    encoded_mark = mark.encode()
    return {
        pid
        for pid in list_children()
        if pid != session and (_session_id(pid) == session or encoded_mark in _read_environ(pid))
    }


def process_identity(pid: int) -> str:
    """Return the PID and the start time of a running process, because PIDs are reused."""
    fields = _read_stat(pid).split()
    is_running = len(fields) > _START_TIME_FIELD and fields[0] not in "ZX"
    return f"{pid}.{fields[_START_TIME_FIELD] if is_running else '-'}"


def read_environment(pid: int) -> dict[str, str]:
    """Return the initial environment of a process; empty if it is not readable."""
    text = _read_environ(pid).decode(errors="surrogateescape")
    pairs = (variable.partition("=") for variable in text.split("\0"))
    return {name: value for name, _, value in pairs}


def list_children() -> Iterator[int]:
    for listing in _PROC.glob("self/task/*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, listing.read_text().split())


def kill_children() -> None:
    """Kill the children in other sessions, with their process groups: no other code ends these
    children."""
    ours = os.getsid(0)
    for pid in tuple(list_children()):
        if _session_id(pid) != ours:
            signal_group(pid, signal.SIGKILL)
            signal_process(pid, signal.SIGKILL)


def find_zombies() -> set[int]:
    """Return the zombies in other sessions. In our session, libraries reap their own children."""
    # In nearly all cases, this single call finds that there are no zombies.
    try:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return set()
    except ChildProcessError:
        return set()
    ours = os.getsid(0)
    return {
        pid for pid in list_children() if _process_state(pid) == "Z" and _session_id(pid) != ours
    }


def reap_group(group: int) -> None:
    """Reap the ended children of this process that belong to the group."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def reap(pid: int) -> bool:
    """Reap a process if it has ended. Return whether it no longer exists."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def signal_group(group: int, number: int) -> bool:
    """Signal a process group. Return whether it has members, including zombies.

    Signal 0 only checks.
    """
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some members belong to another user
    return True


def signal_process(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _session_id(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _read_environ(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return b""


def _process_state(pid: int) -> str:
    return _read_stat(pid)[:1]


def _read_stat(pid: int) -> str:
    """Return the fields of `stat` from the third on; empty if the process does not exist."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    # The program name ends at the last parenthesis. Programs choose it, so it may contain others.
    return stat.rpartition(") ")[2]
