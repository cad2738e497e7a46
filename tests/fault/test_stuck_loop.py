"""A stuck event loop must not leave a machine moving."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from grpclib.client import Channel
from tests.modules.make import sdk_module
from tests.support.machine.running import (
    SERVING,
    Config,
    Server,
    plug_in,
    run_server,
    save,
    with_free_port,
)
from tests.support.sizes import limit
from tests.support.waiting import pass_time, poll, wait_until

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402
from viam.components.motor.client import MotorClient  # noqa: E402

STUCK = 2.0
"""Seconds after which everything that moves is stopped."""
AT_REST = 3.0
"""Seconds from the loop's last turn until everything that moved stands."""
SLACK = limit(1.0)
"""Seconds more on a computer that is busy with other things."""

BLOCKER = """
import asyncio, re, threading, time
from pathlib import Path
from typing import Annotated
from cogwork.config.schema.fields import Attributes, Dependency
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model, find_dependency
from viam.components.generic import Generic


class Watcher(Attributes):
    board: Annotated[str, Dependency("rdk:component:board")] = ""
    pin: str = ""
    record: str


class Blocker(Generic):
    '''Blocks the event loop in the way that it is told.'''

    async def do_command(self, command, **_):
        record(self.file, "blocked")
        if "seconds" in command:
            time.sleep(command["seconds"])
        elif "holding the interpreter lock" in command:
            re.match("(a+)+$", "a" * 60 + "b")
        else:
            threading.Event().wait()
        return {}


def record(file, what):
    with Path(file).open("a") as opened:
        opened.write(f"{time.monotonic()} {what}\\n")


def watch(pin, file):
    before = None
    while True:
        if (level := pin.output_level) != before:
            record(file, level)
            before = level
        time.sleep(0.01)


async def new(name, attributes, dependencies):
    blocker = Blocker(name.name)
    blocker.file = attributes.record
    if attributes.board:
        pin = await find_dependency(dependencies, attributes.board).gpio_pin_by_name(attributes.pin)
        threading.Thread(target=watch, args=(pin, attributes.record), daemon=True).start()
    return blocker


BLOCKER = Model(
    Api.parse("rdk:component:generic"), ModelName.parse("acme:test:blocker"), Watcher, new
)
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a server with the blocker."""
    return plug_in(tmp_path_factory.mktemp("plugged-in"), BLOCKER, "blocker = {module}:BLOCKER")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    acme: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Server]:
    directory = tmp_path_factory.mktemp("server")
    async with run_server(blocker_config(directory), directory, environment=acme) as server:
        await server.wait_for_status(state="running")
        yield server


def read_events(file: Path) -> list[tuple[float, str]]:
    if not file.exists():
        return []
    pairs = [line.split(" ", 1) for line in file.read_text().splitlines()]
    return [(float(moment), what) for moment, what in pairs]


def machine_config(directory: Path) -> Config:
    """Return a motor on GPIO pins and one in a module, each with a record of its motion."""
    pins = {"pwm": "18", "dir": "23"}
    return with_free_port(
        {
            "components": [
                {
                    "name": "pins",
                    "api": "rdk:component:board",
                    "model": "gpio",
                    "attributes": {"pin_factory": "mock"},
                },
                {
                    "name": "wheel",
                    "api": "rdk:component:motor",
                    "model": "gpio",
                    "attributes": {"board": "pins", "pins": pins},
                },
                {"name": "modular", "api": "rdk:component:motor", "model": "acme:test:recorder"},
                {
                    "name": "blocker",
                    "api": "rdk:component:generic",
                    "model": "acme:test:blocker",
                    "attributes": {
                        "board": "pins",
                        "pin": "18",
                        "record": str(directory / "gpio"),
                    },
                },
            ],
            "modules": [
                {
                    "name": "recorder",
                    "executable_path": str(sdk_module(directory, "recorder")),
                    "env": {"RECORD": str(directory / "module")},
                }
            ],
        }
    )


def blocker_config(directory: Path) -> Config:
    return {
        "components": [
            {
                "name": "blocker",
                "api": "rdk:component:generic",
                "model": "acme:test:blocker",
                "attributes": {"record": str(directory / "gpio")},
            },
            {"name": "wheel", "api": "rdk:component:motor", "model": "fake"},
        ]
    }


class Supervisor:
    """Restarts the server whenever it exits, as systemd does."""

    def __init__(self, file: Path, environment: dict[str, str]) -> None:
        self._command = [sys.executable, "-m", "cogwork.server.main", "-config", str(file)]
        self._environment = {**os.environ, **environment}
        self.starts: asyncio.Queue[int] = asyncio.Queue()
        """The port of each server that serves."""
        self.pids: list[int] = []
        self.exits: list[int] = []
        self.said: list[str] = []

    async def run(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            self.pids.append(process.pid)
            try:
                assert process.stdout is not None
                async for line in process.stdout:
                    self.said.append(line.decode(errors="replace"))
                    if found := SERVING.search(self.said[-1]):
                        self.starts.put_nowait(int(found[1].rpartition(":")[2]))
                self.exits.append(await process.wait())
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.communicate()


@contextlib.asynccontextmanager
async def supervise(
    directory: Path, config: Config, environment: dict[str, str]
) -> AsyncIterator[Supervisor]:
    file = directory / "machine.json"
    save(file, config)
    supervisor = Supervisor(file, {"COGWORK_HOME": str(directory / "home"), **environment})
    running = asyncio.ensure_future(supervisor.run())
    try:
        yield supervisor
    finally:
        print("".join(supervisor.said))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def wait_until_ready(motor: MotorClient) -> None:
    async def is_answered() -> bool:
        with contextlib.suppress(Exception):
            await motor.is_moving(timeout=2)
            return True
        return False

    await poll(is_answered, within=30, every=0.05)


async def test_motors_stop_and_the_server_restarts_when_the_loop_is_stuck(
    tmp_path: Path, acme: dict[str, str]
) -> None:
    environment = {**acme, "COGWORK_LOOP_GIVE_UP": "5s"}
    async with supervise(tmp_path, machine_config(tmp_path), environment) as supervisor:
        port = await asyncio.wait_for(supervisor.starts.get(), 30)
        async with Channel("localhost", port) as channel:
            for name in ("wheel", "modular"):
                motor = MotorClient(name, channel)
                await wait_until_ready(motor)
                await motor.set_power(1.0)
            await wait_until(
                lambda: any(what == "1.0" for _, what in read_events(tmp_path / "gpio"))
            )
            module = next(iter(psutil.Process(supervisor.pids[0]).children(recursive=True)))
            with contextlib.suppress(Exception):
                await GenericClient("blocker", channel).do_command({}, timeout=0.5)
        again = await asyncio.wait_for(supervisor.starts.get(), 60)
        gpio, modular = read_events(tmp_path / "gpio"), read_events(tmp_path / "module")
        blocked = next(moment for moment, what in gpio if what == "blocked")
        rests = {
            "gpio": next(at for at, what in gpio if at > blocked and float(what) == 0.0),
            "module": next(at for at, what in modular if at > blocked and float(what) == 0.0),
        }
        took = {name: round(moment - blocked, 2) for name, moment in rests.items()}
        print(f"at rest after {took}, exit codes {supervisor.exits}")
        assert all(seconds <= AT_REST + SLACK for seconds in took.values())
        assert supervisor.exits == [1]
        said = "".join(supervisor.said)
        assert "the event loop has been stuck for 2s; everything that moves was stopped" in said
        assert "in do_command" in said
        assert not psutil.pid_exists(module.pid) or module.status() == psutil.STATUS_ZOMBIE
        async with Channel("localhost", again) as channel:
            await wait_until_ready(MotorClient("modular", channel))


@pytest.mark.asyncio(loop_scope="module")
async def test_suspended_server_does_not_count_as_stuck(server: Server) -> None:
    since = len(server.out.lines)
    async with Channel("localhost", server.port) as channel:
        wheel = MotorClient("wheel", channel)
        await wheel.set_power(0.5)
        server.signal(signal.SIGSTOP)
        await pass_time(STUCK + 1)
        server.signal(signal.SIGCONT)
        assert await wheel.is_moving()
        await pass_time(1)
        assert await wheel.is_moving()
        await wheel.stop()
    assert not [line for line in server.out.lines[since:] if "the event loop has been" in line]


@pytest.mark.asyncio(loop_scope="module")
async def test_loop_that_recovers_continues_with_everything_at_rest(server: Server) -> None:
    async with Channel("localhost", server.port) as channel:
        wheel = MotorClient("wheel", channel)
        turning = asyncio.ensure_future(wheel.go_for(1, 1000))
        await poll(wheel.is_moving)
        await GenericClient("blocker", channel).do_command({"seconds": STUCK + 1})
        await server.out.wait_for("the event loop recovered")
        with pytest.raises(Exception, match="told to stop"):
            await asyncio.wait_for(turning, 10)
        assert not await wheel.is_moving()
        await wheel.set_power(0.5)
        assert await wheel.is_moving()


async def test_code_holding_the_interpreter_lock_is_killed_with_the_process(
    tmp_path: Path, acme: dict[str, str]
) -> None:
    """No Python thread runs any more: a kernel timer on processor time ends the process."""
    environment = {**acme, "COGWORK_LOOP_GIVE_UP": "2s"}
    async with run_server(
        blocker_config(tmp_path), tmp_path, exits=None, environment=environment
    ) as server:
        await server.wait_for_status(state="running")
        async with Channel("localhost", server.port) as channel:
            began = time.monotonic()
            with contextlib.suppress(Exception):
                command = {"holding the interpreter lock": True}
                await GenericClient("blocker", channel).do_command(command, timeout=0.5)
            code = await server.exit_code(60)
        print(f"exit code {code} after {time.monotonic() - began:.1f} s")
        assert code == -signal.SIGPROF
        assert "do_command" in server.err.text
        # The next server removes what a killed one leaves.
        async with run_server(blocker_config(tmp_path), tmp_path, environment=acme):
            assert not [*Path(tempfile.gettempdir()).glob(f"cogwork-{server.pid}-*")]
