"""Processes left by a killed server, which the next server ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.subprocesses.children import DEADLINE, wait_within

from cogwork.core.clock import SystemClock
from cogwork.subprocesses.leftovers import end_leftovers, find_leftovers
from cogwork.subprocesses.orphans import MARK_VARIABLE, process_identity

TOKEN = "0123456789abcdef"
HOME = Path(f"/home/of/{os.getpid()}")
"""A home of no other server, so that servers of other tests ignore it."""
IGNORE_SIGTERM = "trap '' TERM"
LOOP = "while :; do sleep 1; done"


@contextlib.contextmanager
def start_process(
    mark: str, script: str = "sleep 1000; :", home: Path = HOME, first: str = ":"
) -> Iterator[subprocess.Popen[bytes]]:
    """`first` has run when this returns."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f"{first}; echo; {script}"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, MARK_VARIABLE: mark, "VIAM_HOME": str(home)},
    ) as started:
        try:
            assert started.stdout is not None
            started.stdout.readline()  # a starting process has no environment yet
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


@pytest.fixture
def dead_server() -> str:
    """The identity of a server that has ended."""
    with subprocess.Popen(["/bin/sleep", "1000"]) as server:
        found = process_identity(server.pid)
        server.kill()
    return found


async def test_leftovers_of_a_killed_server_are_ended(dead_server: str) -> None:
    with (
        # One process: a shell whose child is ended before it would exit by itself.
        start_process(f"{dead_server}.{TOKEN}", "exec sleep 1000") as left,
        start_process(f"{dead_server}.{TOKEN}", LOOP, first=IGNORE_SIGTERM) as ignoring,
    ):
        ended = await wait_within(DEADLINE, end_leftovers(HOME, SystemClock()))
        assert ended >= {left.pid, ignoring.pid}
        assert left.wait(DEADLINE) == -signal.SIGTERM
        assert ignoring.wait(DEADLINE) == -signal.SIGKILL


def test_processes_of_a_running_server_are_kept(dead_server: str) -> None:
    us = process_identity(os.getpid())
    with start_process(f"{us}.{TOKEN}") as ours, start_process(f"above {us}.{TOKEN}") as nested:
        assert not find_leftovers(HOME) & {ours.pid, nested.pid}
    with start_process(f"{us}.{TOKEN} {dead_server}.{TOKEN}") as inner:
        assert inner.pid in find_leftovers(HOME)


def test_reused_process_id_is_another_server(dead_server: str) -> None:
    pid, _, started = process_identity(os.getpid()).partition(".")
    with start_process(f"{pid}.{int(started) - 1}.{TOKEN}") as left:
        assert left.pid in find_leftovers(HOME)


@pytest.mark.parametrize("mark", ["above", "", "1", "..", "x.y.z", "-1.2.3", "99999999999.1"])
def test_processes_with_an_invalid_mark_are_kept(mark: str) -> None:
    with start_process(mark) as other:
        assert other.pid not in find_leftovers(HOME)


def test_processes_with_our_own_mark_are_kept(
    dead_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"{dead_server}.{TOKEN}"
    monkeypatch.setenv(MARK_VARIABLE, mark)
    with start_process(mark) as sibling:
        assert sibling.pid not in find_leftovers(HOME)


def test_processes_of_another_home_are_kept(dead_server: str) -> None:
    with start_process(f"{dead_server}.{TOKEN}", home=Path("/elsewhere")) as other:
        assert other.pid not in find_leftovers(HOME)


async def test_search_without_descriptors_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Path) -> set[int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("cogwork.subprocesses.leftovers.find_leftovers", fail)
    assert await end_leftovers(HOME, SystemClock()) == set()
    assert "cannot look for processes of a killed server: Too many open files" in caplog.text
