"""The modules of a server that was killed with SIGKILL do not outlive it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.machine.bad_modules import (
    config,
    environment_of,
    find_marked,
    rogue_module,
    thing,
)
from tests.support.machine.running import Server, run_server
from tests.support.machine.watched import find_front
from tests.support.waiting import wait_until

from cogwork.subprocesses.reaper import KILL_DELAY

MARK = "KILLED_SERVER_TEST"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Set a directory for the private files that a killed server leaves."""
    sockets = tempfile.mkdtemp(dir="/tmp", prefix="cw")
    yield {MARK: str(tmp_path), "TMPDIR": sockets}
    shutil.rmtree(sockets)


def machine(directory: Path, *words: str) -> dict[str, Any]:
    """Return a machine with one module for each of the words."""
    names = [f"m{number}" for number in range(len(words))]
    modules = [rogue_module(directory, name, each) for name, each in zip(names, words, strict=True)]
    return config(modules, [thing(f"t-{name}", f"acme:{name}:thing") for name in names])


def find_living(mark: str) -> list[int]:
    """Leave out zombies: the process that adopts them may take a while to reap them."""
    found = []
    for pid in find_marked(mark):
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


async def wait_for_modules(server: Server, mark: str, count: int) -> None:
    # Besides the modules, there are the server and its front process.
    await wait_until(lambda: len(find_living(mark)) > count + 1, every=0.02)
    await server.wait_for_status(state="running")


async def seconds_until_gone(mark: str) -> float:
    return await wait_until(lambda: not find_living(mark), every=0.02)


@pytest.mark.parametrize(
    ("words", "patience"),
    [(("", "daemon"), KILL_DELAY), (("", "deaf", "bomb"), KILL_DELAY + 5)],
    ids=["ordinary", "deaf"],
)
async def test_modules_end_when_the_server_is_killed(
    tmp_path: Path, environment: dict[str, str], words: tuple[str, ...], patience: float
) -> None:
    mark = environment[MARK]
    async with run_server(
        machine(tmp_path, *words), tmp_path, exits=None, environment=environment
    ) as server:
        await wait_for_modules(server, mark, len(words))
        server.process.kill()
        await server.exit_code()
        seconds = await seconds_until_gone(mark)
    print(f"{words}: gone {seconds:.2f} s after the server was killed")
    assert seconds < patience


async def test_restarted_server_ends_leftover_modules(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Their reaper was killed as well, as by a supervisor that kills the whole group."""
    mark = environment[MARK]
    wanted = machine(tmp_path, "", "deaf")
    async with run_server(wanted, tmp_path, exits=None, environment=environment) as server:
        await wait_for_modules(server, mark, 2)
        front = find_front(server.pid).pid
        left = [pid for pid in find_living(mark) if pid not in (server.pid, front)]
        for child in psutil.Process(server.pid).children():
            if not environment_of(child.pid).count(mark.encode()):
                child.kill()
        server.process.kill()
        await server.exit_code()
    assert [pid for pid in left if psutil.pid_exists(pid)] == left
    async with run_server(machine(tmp_path, ""), tmp_path, environment=environment) as server:
        await server.out.wait_for("processes left behind by a killed server")
        await wait_until(lambda: not set(left) & set(find_living(mark)), every=0.02)
        await server.wait_for_status(state="running")
