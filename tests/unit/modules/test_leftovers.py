"""What a server finds at its start of one that was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.modules.children import DEADLINE, within

from cogwork.core.clock import SystemClock
from cogwork.modules.leftovers import end_leftovers, find_leftovers
from cogwork.modules.orphans import MARK_VARIABLE, process_identity

TOKEN = "0123456789abcdef"
HOME = Path(f"/home/of/{os.getpid()}")
"""Of no other server: those that other tests start meanwhile leave it alone."""
DEAF = "trap '' TERM; while :; do sleep 1; done"


@contextlib.contextmanager
def process(
    mark: str, script: str = "sleep 1000; :", home: Path = HOME
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        ["/bin/sh", "-c", f"echo; {script}"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, MARK_VARIABLE: mark, "VIAM_HOME": str(home)},
    ) as started:
        try:
            assert started.stdout is not None
            started.stdout.readline()  # while it is being started, it has no environment
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


@pytest.fixture
def gone() -> str:
    """The identity of a server that is no more."""
    with subprocess.Popen(["/bin/sleep", "1000"]) as server:
        found = process_identity(server.pid)
        server.kill()
    return found


async def test_ends_what_a_killed_server_left(gone: str) -> None:
    with process(f"{gone}.{TOKEN}") as left, process(f"{gone}.{TOKEN}", DEAF) as deaf:
        ended = await within(DEADLINE, end_leftovers(HOME, SystemClock()))
        assert ended >= {left.pid, deaf.pid}
        assert left.wait(DEADLINE) == -signal.SIGTERM
        assert deaf.wait(DEADLINE) == -signal.SIGKILL


def test_leaves_what_belongs_to_a_server_that_runs(gone: str) -> None:
    us = process_identity(os.getpid())
    with process(f"{us}.{TOKEN}") as ours, process(f"above {us}.{TOKEN}") as nested:
        assert not find_leftovers(HOME) & {ours.pid, nested.pid}
    with process(f"{us}.{TOKEN} {gone}.{TOKEN}") as inner:
        assert inner.pid in find_leftovers(HOME)


def test_a_number_that_is_used_again_is_another_server(gone: str) -> None:
    pid, _, started = process_identity(os.getpid()).partition(".")
    with process(f"{pid}.{int(started) - 1}.{TOKEN}") as left:
        assert left.pid in find_leftovers(HOME)


@pytest.mark.parametrize("mark", ["above", "", "1", "..", "x.y.z", "-1.2.3", "99999999999.1"])
def test_leaves_what_it_does_not_understand(mark: str) -> None:
    with process(mark) as other:
        assert other.pid not in find_leftovers(HOME)


def test_leaves_what_it_lives_in_itself(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"{gone}.{TOKEN}"
    monkeypatch.setenv(MARK_VARIABLE, mark)
    with process(mark) as sibling:
        assert sibling.pid not in find_leftovers(HOME)


def test_leaves_what_another_home_has(gone: str) -> None:
    with process(f"{gone}.{TOKEN}", home=Path("/elsewhere")) as other:
        assert other.pid not in find_leftovers(HOME)
