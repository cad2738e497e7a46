"""What `cogwork-agent status` says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore
from cogwork.agent.slots.store import StateStore
from cogwork.agent.status import format_status, list_failed, read_status
from cogwork.agent.updates.progress import UpdateProgress
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product

SERVER = Product.SERVER
SINCE = "1970-01-12 13:46:40"


class Machine:
    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        for version in ("1.0.0", "1.1.0"):
            self.layout.slot(SERVER, version).mkdir(parents=True)
        self.layout.switch(SERVER, "1.0.0")
        self.states = StateStore(self.layout)
        self.progress = UpdateProgress(self.layout.progress, ManualClock())

    @property
    def text(self) -> str:
        return format_status(read_status(self.layout))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return Machine(tmp_path)


def test_current_versions(machine: Machine) -> None:
    machine.progress.note_current(SERVER, "1.0.0")
    assert machine.text == "server: 1.0.0\nagent: not installed"
    found = read_status(machine.layout)["products"]["server"]
    assert (found["installed"], found["last_good"]) == (["1.0.0", "1.1.0"], "1.0.0")


def test_minimum_and_source(machine: Machine) -> None:
    MinimumStore(machine.layout.minimums).raise_to(SERVER, Minimum("0.9.0", "1.0.0"))
    machine.progress.note_source("the cloud is away")
    assert machine.text == (
        "server: 1.0.0 (minimum 0.9.0)\nagent: not installed\n"
        "cannot look for updates: the cloud is away"
    )


def test_update_that_waits(machine: Machine) -> None:
    machine.progress.note_waiting(SERVER, "1.1.0", "the arm moves")
    assert f"\n  1.1.0 is waiting since {SINCE}: the arm moves\n" in machine.text
    machine.progress.note_installing(SERVER, "1.1.0", "")
    assert f"\n  1.1.0 is installing since {SINCE}\n" in machine.text


def test_versions_that_failed(machine: Machine) -> None:
    state = machine.states[SERVER]
    state = state.reject("1.1.0", "it crashed", 0).reject("0.9.0", "it hung", 0)
    machine.states[SERVER] = state
    machine.progress.note_failed(SERVER, "1.1.0", "it crashed")
    # The newest failure is not said twice.
    assert machine.text.splitlines()[:3] == [
        "server: 1.0.0",
        f"  1.1.0 has failed since {SINCE}: it crashed",
        "  0.9.0 has failed: it hung",
    ]
    assert list_failed(machine.layout) == ["server 0.9.0", "server 1.1.0"]


def test_damaged_state_is_what_it_says(machine: Machine) -> None:
    machine.layout.state.write_text("damaged")
    assert "state.json is damaged" in machine.text
