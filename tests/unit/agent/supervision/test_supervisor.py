"""The supervisor: trials, crashes, and returning to the version before, with a manual clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.agent.scripted_server import ScriptedServer

from cogwork.agent.errors import SwitchFailed
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import load_state
from cogwork.agent.slots.store import StateStore
from cogwork.agent.supervision.health import HealthRules
from cogwork.agent.supervision.supervisor import Supervisor
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product

SERVER = Product.SERVER
RULES = HealthRules()
PROOF = RULES.probes * RULES.interval
"""Seconds from the first answer until a version is accepted."""


class Machine:
    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        for version in ("1.0.0", "1.1.0", "1.2.0"):
            self.layout.slot(SERVER, version).mkdir(parents=True)
        self.clock = ManualClock()
        self.server = ScriptedServer(lambda: self.layout.current_version(SERVER))
        self.states = StateStore(self.layout)
        self.supervisor = self._make_supervisor()
        self._tasks: list[asyncio.Task[None]] = []

    def _make_supervisor(self) -> Supervisor:
        return Supervisor(
            self.layout, self.states, self.server, self.server.probe, self.clock, RULES
        )

    def remove_current(self) -> None:
        """Leave no version that is current, as on a new machine."""
        self.layout.current(SERVER).unlink()

    def install(self, version: str, previous: str | None = None) -> None:
        """Make a version the current one, which has been good."""
        self.layout.switch(SERVER, version)
        state = self.states[SERVER]
        for each in (previous, version):
            state = state.accept(each) if each is not None else state
        self.states[SERVER] = state

    async def run(self) -> None:
        self._tasks.append(asyncio.create_task(self.supervisor.run()))
        await self.advance(0)

    async def restart_agent(self) -> None:
        """End the agent as a power cut would, but for the server, and start another."""
        await self.cancel()
        self.states = StateStore(self.layout)
        self.supervisor = self._make_supervisor()
        await self.run()

    def switch(self, version: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self.supervisor.switch(version))
        self._tasks.append(task)
        return task

    async def advance(self, seconds: float) -> None:
        """Let time pass, and what is done in threads be done."""
        loop = asyncio.get_running_loop()
        await self.clock.advance(seconds)
        for _ in range(8):
            await loop.run_in_executor(None, lambda: None)
            await self.clock.advance(0)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, SwitchFailed, OSError):
                await task
        self._tasks.clear()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    # One thread, so that waiting for it is waiting for all that was begun before.
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        made = Machine(tmp_path)
        yield made
        await made.cancel()


async def test_crashed_server_is_started_again_after_a_pause(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    assert machine.server.started == ["1.0.0"]
    machine.server.crash()
    await machine.advance(0)
    assert machine.server.process_id is None
    await machine.advance(2)
    assert machine.server.started == ["1.0.0", "1.0.0"]


async def test_machine_without_a_version_waits_for_one(machine: Machine) -> None:
    machine.remove_current()
    await machine.run()
    await machine.advance(600)
    assert machine.server.started == []
    switching = machine.switch("1.0.0")
    await machine.advance(0)
    await machine.advance(PROOF + 1)
    await switching
    assert machine.server.version == "1.0.0"


async def test_version_is_good_after_it_has_answered_for_a_while(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    switching = machine.switch("1.1.0")
    await machine.advance(0)
    assert machine.server.version == "1.1.0"
    await machine.advance(PROOF - 1)
    assert not switching.done()
    trial = machine.states[SERVER].trial
    assert trial is not None
    assert (trial.version, trial.fallback) == ("1.1.0", "1.0.0")
    await machine.advance(2)
    await switching
    state = machine.states[SERVER]
    assert (state.trial, state.last_good, state.previous) == (None, "1.1.0", "1.0.0")


def _crash(machine: Machine) -> None:
    machine.server.broken.add("1.1.0")


def _stay_silent(machine: Machine) -> None:
    machine.server.silent.add("1.1.0")


@pytest.mark.parametrize(
    ("fail", "reason"),
    [(_crash, "ended while it was on trial"), (_stay_silent, "no answer within 60 s")],
)
async def test_version_that_fails_is_replaced_by_the_former_and_remembered(
    machine: Machine, fail: Callable[[Machine], None], reason: str
) -> None:
    machine.install("1.0.0")
    await machine.run()
    fail(machine)
    switching = machine.switch("1.1.0")
    await machine.advance(0)
    await machine.advance(RULES.start_timeout + 1)
    with pytest.raises(SwitchFailed, match=reason):
        await switching
    state = machine.states[SERVER]
    assert reason in state.failed["1.1.0"].reason
    assert (state.trial, state.last_good) == (None, "1.0.0")
    assert machine.server.version == "1.0.0"
    # The one before gets the time it needs, the one that failed does not.
    assert machine.server.stop_timeouts == [None, 20.0]


async def test_crash_late_in_a_trial_counts(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    switching = machine.switch("1.1.0")
    await machine.advance(0)
    await machine.advance(PROOF - 1)
    machine.server.crash()
    await machine.advance(0)
    with pytest.raises(SwitchFailed, match="exit code 1"):
        await switching
    assert machine.server.version == "1.0.0"


async def test_version_that_crashes_again_and_again_is_given_up(machine: Machine) -> None:
    machine.install("1.1.0", previous="1.0.0")
    await machine.run()
    for _ in range(3):
        machine.server.crash()
        await machine.advance(0)
        await machine.advance(60)
    assert machine.server.version == "1.0.0"
    assert "again and again" in machine.states[SERVER].failed["1.1.0"].reason


async def test_rare_crashes_give_nothing_up(machine: Machine) -> None:
    machine.install("1.1.0", previous="1.0.0")
    await machine.run()
    for _ in range(6):
        machine.server.crash()
        await machine.advance(0)
        await machine.advance(400)
    assert machine.server.version == "1.1.0"
    assert machine.states[SERVER].failed == {}


@pytest.mark.parametrize("previous", [None, "1.0.0"])
async def test_without_a_better_version_the_server_is_started_forever(
    machine: Machine, previous: str | None
) -> None:
    machine.install("1.1.0", previous=previous)
    if previous is not None:
        state = machine.states[SERVER]
        machine.states[SERVER] = state.reject(previous, "it was broken", 0)
    await machine.run()
    for _ in range(8):
        machine.server.crash()
        await machine.advance(0)
        await machine.advance(60)
    assert machine.server.started == ["1.1.0"] * 9


async def test_trial_goes_on_after_the_agent_was_interrupted(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    machine.switch("1.1.0")
    await machine.advance(0)
    await machine.advance(PROOF - 1)
    await machine.restart_agent()
    trial = machine.states[SERVER].trial
    assert trial is not None
    assert trial.boots == 1
    await machine.advance(PROOF + 1)
    assert machine.states[SERVER].last_good == "1.1.0"
    assert machine.server.started == ["1.0.0", "1.1.0"]


async def test_trial_that_is_always_interrupted_has_failed(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    machine.switch("1.1.0")
    await machine.advance(0)
    for _ in range(4):
        await machine.advance(1)
        await machine.restart_agent()
    assert machine.server.version == "1.0.0"
    assert "interrupted too often" in machine.states[SERVER].failed["1.1.0"].reason


async def test_first_version_that_fails_leaves_nothing_to_return_to(machine: Machine) -> None:
    machine.remove_current()
    machine.server.broken.add("1.0.0")
    await machine.run()
    switching = machine.switch("1.0.0")
    await machine.advance(0)
    with pytest.raises(SwitchFailed):
        await switching
    assert "1.0.0" in machine.states[SERVER].failed
    assert machine.server.started == ["1.0.0"]


async def test_stopped_agent_can_leave_the_server_or_stop_it(machine: Machine) -> None:
    machine.install("1.0.0")
    await machine.run()
    await machine.cancel()
    assert machine.server.version == "1.0.0"
    await machine.supervisor.stop()
    assert machine.server.process_id is None


async def test_trial_is_on_disk_before_anything_is_switched(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install("1.0.0")
    await machine.run()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Layout, "switch", fail)
    switching = machine.switch("1.1.0")
    await machine.advance(0)
    with pytest.raises(OSError, match="Input/output"):
        await switching
    trial = load_state(machine.layout.state)[SERVER].trial
    assert trial is not None
    assert (trial.version, trial.fallback) == ("1.1.0", "1.0.0")
    assert machine.server.version == "1.0.0"
