"""The server as a real process of the agent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from tests.support.waiting import wait_until

from cogwork.agent.supervision.child_server import ChildServer

SERVE = "trap 'exit 0' TERM; touch $READY; while true; do sleep 0.01; done"
STUBBORN = "trap '' TERM; touch $READY; while true; do sleep 0.01; done"


class Machine:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ready = directory / "ready"
        self.script = SERVE
        self._servers: list[ChildServer] = []
        self.server = self.find()

    def find(self, stop_timeout: float = 5.0) -> ChildServer:
        """Return the server as an agent that has just started sees it."""
        environment = {"PATH": os.environ["PATH"], "READY": str(self.ready)}
        self.server = ChildServer(
            lambda: ["/bin/sh", "-c", self.script], self.directory, environment, stop_timeout
        )
        self._servers.append(self.server)
        return self.server

    async def close(self) -> None:
        for server in self._servers:
            await server.stop(0.1)

    async def start(self, script: str = SERVE) -> int:
        self.script = script
        self.ready.unlink(missing_ok=True)
        await self.server.start()
        await wait_until(self.ready.exists)
        assert self.server.process_id is not None
        return self.server.process_id

    async def end(self, script: str) -> str:
        """Return how a server ends by itself."""
        self.script = script
        await self.server.start()
        return await self.server.wait()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    made = Machine(tmp_path)
    yield made
    await made.close()


async def test_server_that_runs_is_not_started_twice(machine: Machine) -> None:
    process_id = await machine.start()
    await machine.server.start()
    assert machine.server.process_id == process_id
    assert psutil.pid_exists(process_id)


async def test_server_is_asked_to_stop(machine: Machine) -> None:
    await machine.start()
    await machine.server.stop()
    assert machine.server.process_id is None
    assert await machine.server.wait() == "it ended with exit code 0"
    await machine.server.stop()


@pytest.mark.parametrize(("timeout", "own"), [(0.05, 60.0), (60.0, 0.05), (None, 0.05)])
async def test_server_that_does_not_stop_is_killed(
    machine: Machine, timeout: float | None, own: float
) -> None:
    machine.find(own)
    await machine.start(STUBBORN)
    async with asyncio.timeout(10):
        await machine.server.stop(timeout)
    assert await machine.server.wait() == "it was killed by SIGKILL"


async def test_modules_do_not_outlive_the_server(machine: Machine) -> None:
    module = machine.directory / "module"
    process_id = await machine.start(
        f"setsid sleep 600 & echo $! > {module}.new; mv {module}.new {module}; {SERVE}"
    )
    children = psutil.Process(process_id).children(recursive=True)
    assert children
    await machine.server.stop()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("exit 0", "it ended with exit code 0"),
        ("echo; echo no such camera; echo; exit 3", "it ended with exit code 3: no such camera"),
        ("kill -9 $$", "it was killed by SIGKILL"),
        ("echo out of memory >&2; kill -6 $$", "it was killed by SIGABRT: out of memory"),
    ],
)
async def test_end_is_described(machine: Machine, script: str, how: str) -> None:
    assert await machine.end(script) == how
    assert machine.server.process_id is None


async def test_long_last_line_is_cut(machine: Machine) -> None:
    how = await machine.end("head -c 9000 /dev/zero | tr '\\0' x; echo end; exit 1")
    assert how.endswith("xxend")
    assert len(how) < 350


async def test_crashed_server_is_started_again(machine: Machine) -> None:
    first = await machine.start()
    os.kill(first, signal.SIGKILL)
    assert await machine.server.wait() == "it was killed by SIGKILL"
    assert await machine.start() != first


async def test_next_agent_finds_the_server(machine: Machine) -> None:
    process_id = await machine.start()
    assert machine.find().process_id == process_id
    await machine.server.start()
    assert machine.server.process_id == process_id
    waiting = asyncio.ensure_future(machine.server.wait())
    os.kill(process_id, signal.SIGKILL)
    # It is no child of this agent, which learns of its end and not how.
    assert await waiting == "it ended"


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"pid": 1, "started": 5}', '{"pid": "x"}'])
async def test_record_of_another_process_is_ignored(machine: Machine, damage: str) -> None:
    """Least of all is a process stopped whose ID the server once had."""
    (machine.directory / "server.pid").write_text(damage)
    assert machine.find().process_id is None


async def test_process_with_the_id_of_a_former_server_is_not_taken_for_it(
    machine: Machine,
) -> None:
    process_id = await machine.start()
    record = json.loads((machine.directory / "server.pid").read_bytes())
    record["started"] += 2
    (machine.directory / "server.pid").write_text(json.dumps(record))
    assert machine.find().process_id is None
    await machine.server.stop()
    assert psutil.pid_exists(process_id)


async def test_program_that_cannot_be_started(machine: Machine) -> None:
    server = ChildServer(lambda: ["/nowhere"], machine.directory, {}, 1.0)
    with pytest.raises(OSError):
        await server.start()
    assert server.process_id is None
    assert await server.wait() == "it ended"


async def test_output_of_the_server_is_private(machine: Machine) -> None:
    await machine.start()
    assert (machine.directory / "server.out").stat().st_mode & 0o777 == 0o600
