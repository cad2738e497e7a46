"""Updates that a power cut interrupts at every system call: the machine always has a version."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from tests.support.power_cut import Disk, PowerCut
from tests.support.sizes import size
from tests.support.waiting import run_others, wait_until

from cogwork.agent.errors import ServerSilent, SwitchFailed
from cogwork.agent.launcher import choose_version, fail_trial
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState, save_state
from cogwork.agent.slots.store import StateStore
from cogwork.agent.supervision.health import HealthRules
from cogwork.agent.supervision.probe import ServerAnswer
from cogwork.agent.supervision.supervisor import Supervisor
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product

OLD, NEW = "1.0.0", "2.0.0"
SEEDS = size(ci=2, full=30)
SERVER, AGENT = Product.SERVER, Product.AGENT


class Computer:
    """Runs the current version: the old one works, and the new one if it is good."""

    def __init__(self, layout: Layout, *, new_is_good: bool) -> None:
        self._layout = layout
        self._new_is_good = new_is_good
        self.running: str | None = None

    @property
    def process_id(self) -> int | None:
        return 1 if self.running is not None else None

    async def start(self) -> None:
        self.running = self.running or self._layout.current_version(SERVER)
        assert self.running is not None

    async def stop(self, timeout: float | None = None) -> None:
        self.running = None

    async def wait(self) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    def forget(self) -> None: ...

    async def ask(self, process_id: int | None) -> ServerAnswer:
        assert process_id is not None
        if self.running == NEW and not self._new_is_good:
            raise ServerSilent("it hangs")
        return ServerAnswer(str(self.running), True, "")


def make_supervisor(layout: Layout, computer: Computer) -> Supervisor:
    rules = HealthRules(start_timeout=0, interval=0, poll=0)
    states, clock = StateStore(layout), ManualClock()
    return Supervisor(layout, states, computer, computer, clock, rules)  # type: ignore[arg-type]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "backups").mkdir()
    return Layout(tmp_path / "root")


def install(layout: Layout) -> None:
    """Begin with the old version current and good, and the new one installed."""
    for product in Product:
        for version in (OLD, NEW):
            layout.slot(product, version).mkdir(parents=True, exist_ok=True)
        layout.switch(product, OLD)
    save_state(layout.state, {product: ProductState(last_good=OLD) for product in Product})


async def run_briefly(supervisor: Supervisor) -> None:
    """Let an interrupted trial come to its end."""
    running = asyncio.ensure_future(supervisor.run())
    await run_others()
    await wait_until(
        lambda: supervisor._states[SERVER].trial is None and not supervisor._lock.locked()
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def cut_and_recover(layout: Layout, cut_at: int, seed: int, *, new_is_good: bool) -> bool:
    """Return whether the update was interrupted."""
    install(layout)
    disk = Disk(layout.root.parent / "backups", cut_at, random.Random(seed))
    computer = Computer(layout, new_is_good=new_is_good)
    supervisor = make_supervisor(layout, computer)
    with disk.attached():
        try:
            await computer.start()
            await supervisor.switch(NEW)
        except (PowerCut, SwitchFailed):
            pass
    # The computer starts again.
    computer = Computer(layout, new_is_good=new_is_good)
    await run_briefly(make_supervisor(layout, computer))
    current = layout.current_version(SERVER)
    assert current in ((OLD, NEW) if new_is_good else (OLD,))
    assert StateStore(layout)[SERVER].trial is None
    assert computer.running == current
    return disk.is_off


@pytest.mark.parametrize("new_is_good", [True, False])
async def test_server_is_always_on_a_version_that_serves(layout: Layout, new_is_good: bool) -> None:
    cuts = 0
    for seed in range(SEEDS):
        cut_at = 1
        while await cut_and_recover(layout, cut_at, seed, new_is_good=new_is_good):
            cut_at += 1
            cuts += 1
    print(f"{cuts} cut points, new version {'good' if new_is_good else 'bad'}")
    assert cuts > SEEDS * 10


def update_agent(layout: Layout) -> None:
    """What an agent does before it ends for its successor, and its launcher afterwards."""
    states = StateStore(layout)
    states[AGENT] = states[AGENT].begin_trial(NEW, OLD, 0.0)
    layout.switch(AGENT, NEW)
    for _ in range(3):
        choose_version(layout)
    fail_trial(layout, NEW, "it hung")


def test_agent_is_always_on_a_version_that_can_be_started(layout: Layout) -> None:
    cuts = 0
    for seed in range(SEEDS):
        cut_at, is_interrupted = 1, True
        while is_interrupted:
            install(layout)
            disk = Disk(layout.root.parent / "backups", cut_at, random.Random(seed))
            with disk.attached():
                try:
                    update_agent(layout)
                except PowerCut:
                    cuts += 1
            is_interrupted = disk.is_off
            cut_at += 1
            # The new agent never works: after three more starts, the old one is back.
            started = [choose_version(layout) for _ in range(5)]
            assert started[-1] == OLD
            assert None not in started
    print(f"{cuts} cut points of the agent's own update")
    assert cuts > SEEDS * 10
