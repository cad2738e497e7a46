"""The reaper ends process groups after their server was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.waiting import block_until
from tests.unit.subprocesses.children import DEADLINE

from cogwork.subprocesses.orphans import MARK_VARIABLE, list_children, process_identity
from cogwork.subprocesses.reaper import KILL_DELAY, Reaper

SERVER = """
import os, sys, subprocess
from cogwork.subprocesses.orphans import MARK_VARIABLE, process_identity
from cogwork.subprocesses.reaper import Reaper
reaper = Reaper()
mark = {MARK_VARIABLE: f"above {process_identity(os.getpid())}.0123"}
for script in sys.argv[1:]:
    child = subprocess.Popen(
        ["/bin/sh", "-c", script], start_new_session=True, env={**os.environ, **mark}
    )
    reaper.watch(child.pid)
    print(child.pid, flush=True)
sys.stdin.read()
"""
"""A program that starts each of its arguments and waits to be killed."""
IGNORE_SIGTERM = "trap '' TERM; while :; do sleep 1; done"
DAEMON = "setsid sh -c 'exec sleep 1000' & wait"


class KilledServer:
    """A server that is killed, and the process groups it started."""

    def __init__(self, *scripts: str) -> None:
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *scripts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.server.stdout is not None
        self.groups = [int(self.server.stdout.readline()) for _ in scripts]
        for group, script in zip(self.groups, scripts, strict=True):
            if script.startswith("trap"):
                block_until(partial(_handles_sigterm, group))

    def kill(self) -> None:
        self.server.kill()
        self.server.wait(DEADLINE)

    def close(self) -> None:
        self.kill()
        for stream in (self.server.stdin, self.server.stdout):
            if stream is not None:
                stream.close()
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def seconds_until_gone(*groups: int) -> float:
    return block_until(lambda: not any(_is_running(group) for group in groups))


def _handles_sigterm(pid: int) -> bool:
    """Return whether a shell has run its `trap`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigIgn", "SigCgt"))]
    return any(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


def _is_running(group: int) -> bool:
    """Return whether the group has a process that is not a zombie."""
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of, *_ = each.read_text().rpartition(") ")[2].split()
            if int(of) == group and state != "Z":
                return True
    return False


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    reaper = Reaper()
    yield reaper
    reaper.close()


def test_groups_get_sigterm_first(tmp_path: Path) -> None:
    note = tmp_path / "stopped"
    killed = KilledServer(
        f"trap 'touch {note}; exit' TERM; while :; do sleep 0.05; done", "sleep 1000"
    )
    try:
        killed.kill()
        assert seconds_until_gone(*killed.groups) < KILL_DELAY
        assert note.exists()
    finally:
        killed.close()


def test_groups_that_ignore_sigterm_or_are_suspended_are_killed() -> None:
    killed = KilledServer(IGNORE_SIGTERM, IGNORE_SIGTERM)
    try:
        os.killpg(killed.groups[1], signal.SIGSTOP)
        killed.kill()
        assert KILL_DELAY - 1 < seconds_until_gone(*killed.groups) < KILL_DELAY + 5
    finally:
        killed.close()


def test_daemon_outside_its_group_is_found_by_its_mark() -> None:
    killed = KilledServer(DAEMON)
    try:
        server = process_identity(killed.server.pid)
        block_until(partial(_find_daemons, server))
        daemons = _find_daemons(server)
        killed.kill()
        assert seconds_until_gone(*killed.groups, *daemons) < KILL_DELAY
    finally:
        killed.close()


def _find_daemons(server: str) -> list[int]:
    """Return the processes with the mark that sleep."""
    mark, found = f"{MARK_VARIABLE}=above {server}.".encode(), []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_marked = mark in (each / "environ").read_bytes()
            if is_marked and (each / "cmdline").read_bytes() == b"sleep\x001000\0":
                found.append(int(each.name))
    return found


def test_close_leaves_no_child_processes(reaper: Reaper) -> None:
    reaper.watch(1 << 22)
    assert len(set(list_children())) == 1
    reaper.forget(1 << 22)
    reaper.close()
    assert not set(list_children())


def test_forgotten_groups_are_not_killed(reaper: Reaper) -> None:
    """Their ids may belong to other processes by then."""
    with subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as other:
        try:
            reaper.watch(other.pid)
            reaper.watch(1 << 22)  # so that a reaper process runs
            reaper.forget(other.pid)
            reaper.close()
            assert other.poll() is None
        finally:
            other.kill()


def test_reaper_process_is_restarted_when_it_dies(reaper: Reaper) -> None:
    reaper.watch(1 << 22)
    (first,) = list_children()
    os.kill(first, signal.SIGKILL)
    until = time.monotonic() + DEADLINE
    while set(list_children()) == {first} and time.monotonic() < until:
        reaper.watch((1 << 22) + 1)
    assert set(list_children()) != {first}
    reaper.forget(1 << 22)
    reaper.forget((1 << 22) + 1)
