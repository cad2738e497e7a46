"""A whole agent in this process: what ends it, how it updates and accepts itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent.releases import ReleaseMaker
from tests.support.agent.scripted_server import ScriptedServer
from tests.support.waiting import wait_until

from cogwork import __version__
from cogwork.agent.agent import Agent, run_agent, server_command
from cogwork.agent.errors import AgentRunning, BadSettings
from cogwork.agent.launcher import ALIVE_INTERVAL, EXIT_UPDATED
from cogwork.agent.settings import AgentSettings, WindowSettings
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState, load_state
from cogwork.agent.slots.store import StateStore
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product

SERVER, AGENT = Product.SERVER, Product.AGENT
NEXT = "99.0.0"


class Machine:
    """A machine whose server is scripted, with updates from a folder."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.layout = Layout(directory / "root")
        self.releases = ReleaseMaker(directory / "releases")
        self.channel = self.releases.directory / "channel.json"
        self.layout.slot(SERVER, "1.0.0").mkdir(parents=True)
        self.layout.switch(SERVER, "1.0.0")
        for version in (__version__, "0.0.1"):
            self.layout.slot(AGENT, version).mkdir()
        self.layout.switch(AGENT, __version__)
        self.settings = AgentSettings(
            config=directory / "machine.json", updates=str(self.releases.directory)
        )
        self.clock = ManualClock()
        self.server = ScriptedServer(lambda: self.layout.current_version(SERVER))
        monkeypatch.setattr(
            "cogwork.agent.agent._find_server", lambda *_: (self.server, self.server.probe)
        )
        self._running: asyncio.Task[int] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(run_agent(self.layout, self.settings, self.clock))
        await wait_until(lambda: self.server.process_id is not None or self.has_ended)

    @property
    def has_ended(self) -> bool:
        return self._running is not None and self._running.done()

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Return the exit code after a signal."""
        os.kill(os.getpid(), number)
        return await self.exit_code()

    async def exit_code(self) -> int:
        assert self._running is not None
        return await asyncio.wait_for(self._running, 30)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def offer(self, **versions: str) -> None:
        self.channel.write_text(json.dumps(versions))

    def begin_trial(self, version: str) -> None:
        states = StateStore(self.layout)
        states[AGENT] = states[AGENT].begin_trial(version, "0.0.1", 0.0)

    @property
    def state(self) -> ProductState:
        return load_state(self.layout.state)[AGENT]


@pytest.fixture
async def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    made = Machine(tmp_path, monkeypatch)
    yield made
    await made.close()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)


async def test_end_of_the_agent_leaves_the_server_running(machine: Machine) -> None:
    await machine.start()
    assert machine.layout.alive.exists()
    assert await machine.end() == 0
    assert machine.server.version == "1.0.0"


async def test_person_at_a_terminal_ends_the_server_too(machine: Machine) -> None:
    await machine.start()
    assert await machine.end(signal.SIGINT) == 0
    assert machine.server.process_id is None


async def test_second_agent_is_refused(machine: Machine) -> None:
    await machine.start()
    with pytest.raises(AgentRunning, match="another agent runs in"):
        await run_agent(machine.layout, machine.settings, machine.clock)
    assert await machine.end() == 0
    await machine.start()
    assert await machine.end() == 0


async def test_wrong_windows_are_refused(machine: Machine) -> None:
    windows = (WindowSettings(start="x", duration="1h"),)
    settings = machine.settings.model_copy(update={"windows": windows})
    with pytest.raises(BadSettings):
        Agent(machine.layout, settings, machine.clock)


async def test_fault_of_a_part_ends_the_agent(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await machine.start()

    async def fail() -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(machine.server, "start", fail)
    machine.server.crash()
    for _ in range(4):
        await machine.clock.advance(2)
    with pytest.raises(RuntimeError, match="a fault"):
        await machine.exit_code()


async def test_agent_shows_that_it_is_alive(machine: Machine) -> None:
    await machine.start()
    for _ in range(3):
        machine.layout.alive.unlink()
        await machine.clock.advance(ALIVE_INTERVAL - 0.1)
        assert not machine.layout.alive.exists()
        await machine.clock.advance(0.1)
        assert machine.layout.alive.exists()


async def test_what_an_interrupted_installation_left_is_removed(machine: Machine) -> None:
    left = machine.layout.versions / ".unfinished-server-2.0.0"
    left.mkdir()
    await machine.start()
    assert not left.exists()


async def test_other_version_of_the_agent_is_started_by_the_launcher(machine: Machine) -> None:
    machine.layout.slot(AGENT, NEXT).mkdir()
    machine.offer(agent=NEXT)
    await machine.start()
    assert await machine.exit_code() == EXIT_UPDATED
    assert machine.layout.current_version(AGENT) == NEXT
    trial = machine.state.trial
    assert trial is not None
    assert (trial.version, trial.fallback) == (NEXT, __version__)
    assert machine.server.version == "1.0.0"  # it goes on


async def test_agent_accepts_itself_a_minute_after_it_can_look_for_updates(
    machine: Machine,
) -> None:
    machine.begin_trial(__version__)
    machine.offer(server="1.0.0")
    await machine.start()
    await wait_until(machine.layout.progress.exists)
    await machine.clock.advance(59.9)
    assert machine.state.trial is not None
    await machine.clock.advance(0.1)
    await wait_until(lambda: machine.state.trial is None)
    assert machine.state.last_good == __version__


async def test_agent_without_updates_accepts_itself_after_ten_minutes(machine: Machine) -> None:
    machine.begin_trial(__version__)
    await machine.start()
    await machine.clock.advance(599)
    assert machine.state.trial is not None
    await machine.clock.advance(2)
    assert machine.state.last_good == __version__


async def test_agent_that_is_not_on_trial_accepts_nothing(machine: Machine) -> None:
    await machine.start()
    before = machine.state
    await machine.clock.advance(1000)
    assert machine.state == before


def test_server_is_started_by_its_own_python(machine_layout: Layout) -> None:
    settings = AgentSettings(config=Path("/etc/m.json"), server_arguments=("-no-tls",))
    slot = machine_layout.slot(SERVER, "1.0.0")
    assert server_command(machine_layout, settings) == [
        *(f"{slot}/bin/python", "-I", "-m", SERVER.module, "-config", "/etc/m.json", "-no-tls")
    ]
    machine_layout.current(SERVER).unlink()
    with pytest.raises(FileNotFoundError, match="no version of the server"):
        server_command(machine_layout, settings)


@pytest.fixture
def machine_layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.slot(SERVER, "1.0.0").mkdir(parents=True)
    layout.switch(SERVER, "1.0.0")
    return layout


class Computer:
    """A computer with one version of the server, which is a script, and perhaps with systemd."""

    def __init__(self, layout: Layout, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.layout, self.units = layout, directory / "units"
        self.calls = directory / "calls"
        self.units.mkdir()
        self._install(
            layout.slot(SERVER, "1.0.0") / "bin" / "python",
            f"cd {directory}; env > new; mv new environment; exec sleep 600",
        )
        self.environment = directory / "environment"
        self._install(
            directory / "systemctl",
            '[ "$1" = show ] && printf "MainPID=0\\nActiveState=activating\\n"'
            f' || echo "$*" >> {self.calls}',
        )
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        monkeypatch.setattr("cogwork.agent.agent.UNITS", self.units)
        monkeypatch.setattr("cogwork.agent.agent.RUNNING", directory)

    @staticmethod
    def _install(program: Path, script: str) -> None:
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    async def run_until(self, file: Path) -> int:
        """Run the agent until the file exists, and return its exit code."""
        settings = AgentSettings(updates="/nowhere", stop_timeout=5)
        running = asyncio.create_task(run_agent(self.layout, settings, ManualClock()))
        await wait_until(lambda: file.exists() or running.done())
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.wait_for(running, 30)


@pytest.fixture
def computer(machine_layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    return Computer(machine_layout, tmp_path, monkeypatch)


async def test_server_is_a_process_of_the_agent_without_a_unit(computer: Computer) -> None:
    assert await computer.run_until(computer.layout.root / "environment") == 0
    environment = computer.environment.read_text()
    assert f"COGWORK_SERVING_FILE={computer.layout.serving}\n" in environment
    assert f"{computer.layout.progress}\n" in environment
    assert not computer.calls.exists()


async def test_server_is_started_by_systemd_if_it_has_its_unit(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.agent.supervision.systemd_server._START_TIMEOUT", 0.1)
    (computer.units / "cogwork-server.service").touch()
    assert await computer.run_until(computer.calls) == 0
    calls = computer.calls.read_text().splitlines()
    assert calls[0] == "start --no-block cogwork-server.service"
    assert calls[-1] == "stop cogwork-server.service"
    assert not computer.environment.exists()
