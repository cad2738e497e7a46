"""Processes whose parent has ended: adopted by the server, so that they can be found and reaped."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PROC = Path("/proc")


def adopt_orphans(adopt: bool = True) -> bool:
    """From now on, whoever descends from this process and loses its parent becomes its child.

    The server calls it once, at its start. Whether it is so: only Linux can.
    """
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0) == 0)
    return False


def adopts_orphans() -> bool:
    if os.getpid() == 1:
        return True
    answer = ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return answer.value != 0


def strays(session: int, mark: str) -> set[int]:
    """Children of this process, by adoption, that a session began or that carry its mark.

    The mark is looked for in the environment, which a program hands on to what it starts. Blocks
    for as long as a process that is asked is kept from answering: call it in a thread.
    """
    sought = mark.encode()
    return {
        pid
        for pid in children()
        if pid != session and (_session(pid) == session or sought in _environment(pid))
    }


def children() -> Iterator[int]:
    for listing in _PROC.glob("self/task/*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, listing.read_text().split())


def end_children() -> None:
    """With the groups that they lead. Of sessions other than ours: nobody else sees to these."""
    ours = os.getsid(0)
    for pid in tuple(children()):
        if _session(pid) != ours:
            signal_group(pid, signal.SIGKILL)
            signal_process(pid, signal.SIGKILL)


def zombies() -> set[int]:
    """Of sessions other than ours: what our own libraries start, they reap."""
    # One question tells that there is none, which is nearly always so.
    try:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return set()
    except ChildProcessError:
        return set()
    ours = os.getsid(0)
    return {pid for pid in children() if _state(pid) == "Z" and _session(pid) != ours}


def reap_group(group: int) -> None:
    """Those of a process group who are children of this process and have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def reap(pid: int) -> bool:
    """Whether it is gone."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def signal_group(group: int, number: int) -> bool:
    """Whether anybody is left in it, were it only one who waits to be reaped. 0: only asks."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some are another user's by now
    return True


def signal_process(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _environment(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return b""


def _state(pid: int) -> str:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    # The name before it is the program's to choose, and may hold brackets.
    return stat.rpartition(") ")[2][:1]
