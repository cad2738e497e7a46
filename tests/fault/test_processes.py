"""Processes of the configuration that misbehave in any way end with their entry and their server,
and affect nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from tests.fault.test_killed_server import find_living, seconds_until_gone
from tests.support.machine.bad_modules import find_marked, zombies
from tests.support.machine.running import Config, Server, run_server
from tests.support.machine.watched import (
    FAKES,
    LONGEST_TURN,
    Phase,
    WatchedServer,
    find_front,
    run_watched,
)
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, poll, wait_until

from cogwork.subprocesses.reaper import KILL_DELAY

MARK = "PROCESS_TEST"
MIB = 1 << 20
MOST_KEPT = 20.0
"""MiB that the server may have grown."""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
SLEEP = "import time; time.sleep(1000)\n"
CROWD = 30
FLOOD = size(ci=2, full=5)
"""Seconds."""
DAEMONS = f"""
import os, sys, time
for _ in range({CROWD}):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open("/dev/null", os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        time.sleep(1000)
"""
"""Forks daemons: each in a session of its own, and a child of whatever adopts it."""
BOMB = """
import os, time
for _ in range(4):
    os.fork()
while True:
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.05)
        os._exit(0)
    time.sleep(0.02)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""
"""Forks without end; each child leads a session of its own."""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Mark everything that a server starts, and set a directory for what a killed one leaves."""
    sockets = tempfile.mkdtemp(dir="/tmp", prefix="cw")
    yield {MARK: str(tmp_path), "TMPDIR": sockets}
    shutil.rmtree(sockets)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def watched(shared: WatchedServer) -> WatchedServer:
    """A server without processes that is calm, whatever was done to it before."""
    save(shared.server)
    await wait_for_processes(shared.server, lambda found: not found)
    await shared.wait_until_calm()
    return shared


def program(name: str, source: str, **settings: Any) -> dict[str, Any]:
    """Return an entry that runs Python source, without what slows down its start."""
    command = {"name": sys.executable, "args": ["-I", "-S", "-E", "-c", source]}
    return {"id": name, **command, "stop_timeout": "500ms", **settings}


def shell(name: str, script: str, **settings: Any) -> dict[str, Any]:
    command = {"name": "sh", "args": ["-c", script]}
    return {"id": name, **command, "stop_timeout": "500ms", **settings}


def machine(*processes: dict[str, Any]) -> Config:
    return {**FAKES, "processes": list(processes)}


def save(server: Server, *processes: dict[str, Any]) -> None:
    server.save({**machine(*processes), "network": {"bind_address": "localhost:0"}})


async def wait_for_processes(
    server: Server, are_so: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Return the processes by ID, once they are as wanted."""

    async def find_processes() -> dict[str, Any]:
        return {each["id"]: each for each in (await server.status())["processes"]}

    return await poll(find_processes, are_so)


def all_in(state: str, count: int) -> Callable[[dict[str, Any]], bool]:
    return lambda found: (
        len(found) == count and all(each["state"] == state for each in found.values())
    )


async def wait_for_crowd(mark: str, count: int) -> None:
    await wait_until(lambda: len(find_living(mark)) >= count, every=0.02)


async def seconds_until_only(mark: str, kept: set[int]) -> float:
    """Return the seconds until only these processes with the mark are left, and no zombies."""
    return await wait_until(
        lambda: not set(find_marked(mark)) - kept and not any(map(zombies, kept)), every=0.02
    )


async def test_exit_hang_and_failed_start_are_reported(tmp_path: Path) -> None:
    config = machine(
        shell("exits", "echo one; echo two; exit 3"),
        shell("hangs", "kill -STOP $$$$"),  # as a file writes "$$"
        shell("once", "exit 0", one_shot=True),
        shell("fails", "echo one; echo two; exit 4", one_shot=True),
        {"id": "missing", "name": "/no/such/program"},
    )
    async with run_server(config, tmp_path) as server:
        found = await wait_for_processes(
            server,
            lambda found: (
                found["exits"]["restarts"] >= 2
                and found["exits"]["state"] == "unhealthy"
                and found["once"]["state"] == "finished"
                and found["fails"]["state"] == "unhealthy"
                and found["missing"]["state"] == "unhealthy"
            ),
        )
        assert found["exits"]["reason"].startswith("exited with code 3 (last line: two); restart")
        assert found["hangs"]["state"] == "running", found["hangs"]
        assert found["fails"]["reason"] == "exited with code 4 (last line: two)\none\ntwo"
        assert found["fails"]["restarts"] == 0
        assert "/no/such/program does not exist" in found["missing"]["reason"]
        await server.out.wait_for(r"process fails exited with code 4 \(last line: two\)")
        hanging = found["hangs"]["pid"]
        began = time.monotonic()
        save(server)
        await wait_for_processes(server, lambda found: not found)
        await wait_until(lambda: not psutil.pid_exists(hanging))
        assert time.monotonic() - began < limit(3)


@pytest.mark.parametrize("logged", [True, False], ids=["logged", "discarded"])
@pytest.mark.asyncio(loop_scope="module")
async def test_flood_of_output_takes_bounded_memory_and_time(
    watched: WatchedServer, logged: bool
) -> None:
    megabytes = size(ci=100, full=1024)
    source = f"""
import os
for _ in range({megabytes // 2}):
    os.write(1, b'0123456789abcde\\n' * 65536)
    os.write(2, b'0123456789abcde\\n' * 65536)
os.write(2, b'the reason\\n')
os._exit(9)
"""
    server, attempt = watched.server, 0
    since = len(server.out.lines)

    async def flood() -> None:
        nonlocal attempt
        attempt += 1
        entry = program("p", source, log=logged, one_shot=True, env={"N": str(attempt)})
        save(server, entry)
        found = await wait_for_processes(
            server, lambda found: bool(found) and found["p"]["state"] == "unhealthy"
        )
        assert found["p"]["reason"].startswith("exited with code 9 (last line: the reason)")
        save(server)
        await wait_for_processes(server, lambda found: not found)

    phase = await watched.attack(f"{megabytes} MB of output", flood)
    print(f"{megabytes / phase.took:.0f} MB/s")
    assert phase.bystander.failed == 0
    assert phase.busy < LONGEST_TURN
    assert phase.growth < MOST_KEPT
    dropped = [line for line in server.out.lines[since:] if "dropped " in line]
    assert bool(dropped) == logged


async def test_process_that_ignores_sigterm_is_killed(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    config = machine(program("p", DEAF + "print('up', flush=True)\n" + SLEEP, log=True))
    async with run_server(config, tmp_path, environment=environment) as server:
        await server.out.wait_for(r"StdOut.*\tup$")
        (process,) = (await server.status())["processes"]
        began = time.monotonic()
        save(server)
        await server.out.wait_for("process p did not stop in time and was killed")
        assert 0.4 < time.monotonic() - began < limit(3)
        assert not psutil.pid_exists(process["pid"])


@pytest.mark.parametrize("source", [DEAF + DAEMONS + SLEEP, DEAF + BOMB], ids=["daemons", "bomb"])
@pytest.mark.parametrize("end", ["removed", "crashed", "stopped"])
async def test_descendants_end_with_their_process(
    tmp_path: Path, environment: dict[str, str], source: str, end: str
) -> None:
    mark = environment[MARK]
    entry = program("p", source, one_shot=end == "crashed")
    async with run_server(machine(entry), tmp_path, exits=None, environment=environment) as server:
        await wait_for_crowd(mark, 16)
        found = await wait_for_processes(server, all_in("running", 1))
        ours = {server.pid, find_front(server.pid).pid}
        if end == "stopped":
            server.signal(signal.SIGTERM)
            await server.exit_code()
            ours = set()
        elif end == "removed":
            save(server)
        else:
            os.kill(found["p"]["pid"], signal.SIGKILL)
        seconds = await seconds_until_only(mark, ours)
        print(f"{end}: gone after {seconds:.2f} s")
        assert seconds < limit(5)


@pytest.mark.parametrize(
    ("sources", "patience"),
    [
        ((SLEEP, DAEMONS + SLEEP), limit(KILL_DELAY)),
        ((DEAF + SLEEP, DEAF + DAEMONS + SLEEP, DEAF + BOMB), limit(KILL_DELAY + 5)),
    ],
    ids=["ordinary", "deaf"],
)
async def test_processes_end_when_the_server_is_killed(
    tmp_path: Path, environment: dict[str, str], sources: tuple[str, ...], patience: float
) -> None:
    mark = environment[MARK]
    entries = [program(f"p{number}", source) for number, source in enumerate(sources)]
    async with run_server(
        machine(*entries), tmp_path, exits=None, environment=environment
    ) as server:
        await wait_for_processes(server, all_in("running", len(entries)))
        await wait_for_crowd(mark, CROWD)
        server.process.kill()
        await server.exit_code()
        seconds = await seconds_until_gone(mark)
    print(f"{len(entries)} processes gone {seconds:.2f} s after the server was killed")
    assert seconds < patience


async def test_restarted_server_ends_leftover_processes(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Their reaper was killed as well. One of them runs as another user, if that is possible."""
    mark = environment[MARK]
    other = {"username": "nobody", "cwd": "/"} if os.geteuid() == 0 else {}
    entries = [shell("a", "exec sleep 1000"), shell("b", "exec sleep 1000", **other)]
    async with run_server(
        machine(*entries), tmp_path, exits=None, environment=environment
    ) as server:
        found = await wait_for_processes(server, all_in("running", 2))
        left = [each["pid"] for each in found.values()]
        await wait_until(lambda: psutil.Process(left[1]).name() == "sleep")
        if other:
            assert psutil.Process(left[1]).uids().real == pwd.getpwnam("nobody").pw_uid
        for child in psutil.Process(server.pid).children():
            if child.pid not in left and child.pid != find_front(server.pid).pid:
                child.kill()
        server.process.kill()
        await server.exit_code()
    assert all(psutil.pid_exists(pid) for pid in left)
    async with run_server(machine(), tmp_path, environment=environment) as server:
        await server.out.wait_for("ending 2 processes left behind by a killed server")
        await wait_until(lambda: not set(left) & set(find_living(mark)), every=0.02)
        await server.wait_for_status(state="running")


@pytest.mark.asyncio(loop_scope="module")
async def test_hundred_processes_start_crash_and_stop_at_once(watched: WatchedServer) -> None:
    count = 100
    entries = [shell(f"p{number}", "exec sleep 1000") for number in range(count)]
    server = watched.server

    async def start() -> None:
        save(server, *entries)
        await wait_for_processes(server, all_in("running", count))

    async def crash() -> None:
        for each in (await server.status())["processes"]:
            os.kill(each["pid"], signal.SIGKILL)
        await wait_for_processes(
            server,
            lambda found: all(
                each["restarts"] and each["state"] == "running" for each in found.values()
            ),
        )

    async def stop() -> None:
        pids = [each["pid"] for each in (await server.status())["processes"]]
        save(server)
        await wait_until(lambda: not any(map(psutil.pid_exists, pids)))
        await wait_for_processes(server, lambda found: not found)

    for name, act in (("start", start), ("crash", crash), ("stop", stop)):
        await check_phase(watched, f"{count} processes {name}", act)
    assert not zombies(server.pid)


@pytest.mark.asyncio(loop_scope="module")
async def test_hundred_floods_of_output_do_not_starve_the_server(watched: WatchedServer) -> None:
    count = 100
    flood = "while :; do echo 0123456789abcdefghijklmnopqrstuvwxyz; done"
    entries = [shell(f"p{number}", flood, log=True) for number in range(count)]
    save(watched.server, *entries)
    await wait_for_processes(watched.server, all_in("running", count))

    async def watch() -> None:
        await pass_time(FLOOD)

    check(await watched.attack(f"{count} floods", watch))
    save(watched.server)
    await wait_for_processes(watched.server, lambda found: not found)


async def check_phase(watched: WatchedServer, name: str, act: Callable[[], Any]) -> None:
    await watched.begin()
    await act()
    check(await watched.end(name))


def check(phase: Phase) -> None:
    assert phase.bystander.failed == 0
    assert phase.busy < LONGEST_TURN
    assert phase.growth < MOST_KEPT


async def test_untrusted_environment_starts_no_process(tmp_path: Path) -> None:
    note = tmp_path / "note"
    config = machine(shell("a", f"touch {note}"), shell("b", f"touch {note}"))
    async with run_server(config, tmp_path, arguments=["-untrusted-env"]) as server:
        await server.wait_for_status(state="running")
        for name in ("a", "b"):
            await server.out.wait_for(f"process {name} is not started: .*-untrusted-env")
        assert (await server.status())["processes"] == []
    assert not note.exists()
