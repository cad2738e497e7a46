"""The launcher: which agent it starts, and which it gives up, with agents that are scripts."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import block_until

from cogwork.agent.launcher import (
    EXIT_UPDATED,
    Launcher,
    choose_version,
    fail_trial,
    main,
)
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState, load_state
from cogwork.agent.slots.store import StateStore
from cogwork.core.versions.product import Product
from cogwork.systemd.notify_socket import NotifySettings

AGENT = Product.AGENT
END = "kill -TERM $PPID; exec sleep 600"
"""Ends the launcher, as systemd does, which ends the agent."""
WORK = "touch $ROOT/agent.alive; sleep 0.05;"
HANG = "exec sleep 600"


class Machine:
    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self._starts = root / "starts"
        self.install("1.0.0", END)
        self.layout.switch(AGENT, "1.0.0")

    def install(self, version: str, script: str) -> Path:
        program = self.layout.slot(AGENT, version) / "bin" / "python"
        program.parent.mkdir(parents=True, exist_ok=True)
        root = self.layout.root
        program.write_text(f"#!/bin/sh\nROOT={root}\necho {version} >> {self._starts}\n{script}\n")
        program.chmod(0o755)
        return program

    def begin_trial(self, version: str, fallback: str | None = "1.0.0") -> None:
        states = StateStore(self.layout)
        states[AGENT] = states[AGENT].begin_trial(version, fallback, 0.0)
        self.layout.switch(AGENT, version)

    def run(self, systemd: NotifySettings | None = None, hang_timeout: float = 60.0) -> int:
        return Launcher(self.layout, hang_timeout, 0.01, systemd).run()

    @property
    def starts(self) -> list[str]:
        return self._starts.read_text().split() if self._starts.exists() else []

    @property
    def state(self) -> ProductState:
        return load_state(self.layout.state)[AGENT]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr("cogwork.agent.launcher._POLL", 0.01)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield Machine(tmp_path)
    for number, handler in before:
        signal.signal(number, handler)


def test_signal_ends_the_agent_and_the_launcher(machine: Machine) -> None:
    assert machine.run() == 0
    assert machine.starts == ["1.0.0"]


def test_agent_that_does_not_end_is_killed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.agent.launcher._STOP_TIMEOUT", 0.1)
    machine.install("1.0.0", "trap '' TERM; kill -TERM $PPID; while true; do sleep 0.05; done")
    assert machine.run() == 0


def test_without_a_version_it_fails(machine: Machine) -> None:
    machine.layout.current(AGENT).unlink()
    machine.layout.slot(AGENT, "1.0.0").rename(machine.layout.root / "elsewhere")
    assert machine.run() == 1


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", f"exit {EXIT_UPDATED}"])
def test_version_that_ends_three_times_on_trial_is_replaced(machine: Machine, script: str) -> None:
    machine.install("2.0.0", script)
    machine.begin_trial("2.0.0")
    assert machine.run() == 0
    assert machine.starts == ["2.0.0"] * 3 + ["1.0.0"]
    assert machine.layout.current_version(AGENT) == "1.0.0"
    assert machine.state.failed["2.0.0"].reason == "it failed 3 times to start"


@pytest.mark.parametrize("damage", ["mode", "missing", "content"])
def test_version_that_cannot_be_executed_is_replaced(machine: Machine, damage: str) -> None:
    program = machine.install("2.0.0", "exit 1")
    match damage:
        case "mode":
            program.chmod(0o644)
        case "missing":
            program.unlink()
        case _:
            program.write_bytes(b"\x7fELF for another computer")
    machine.begin_trial("2.0.0")
    assert machine.run() == 0
    assert machine.starts == ["1.0.0"]


def test_version_that_hangs_on_trial_is_replaced_at_once(machine: Machine) -> None:
    machine.install("2.0.0", HANG)
    machine.begin_trial("2.0.0")
    assert machine.run(hang_timeout=0.3) == 0
    assert machine.layout.current_version(AGENT) == "1.0.0"
    assert machine.state.failed["2.0.0"].reason == "it hung while it was on trial"


def test_version_that_stops_showing_that_it_is_alive_hangs(machine: Machine) -> None:
    machine.install("2.0.0", WORK * 4 + HANG)
    machine.begin_trial("2.0.0")
    assert machine.run(hang_timeout=0.3) == 0
    assert "2.0.0" in machine.state.failed


def test_version_that_shows_that_it_is_alive_does_not_hang(machine: Machine) -> None:
    # For the file, an hour has passed: the clock of the computer may jump.
    touch = "touch -d '1 hour ago' $ROOT/agent.alive; sleep 0.1;"
    machine.install("2.0.0", touch * 24 + END)
    machine.begin_trial("2.0.0")
    assert machine.run(hang_timeout=2.0) == 0
    assert machine.starts == ["2.0.0"]
    assert machine.state.failed == {}


def test_good_version_is_started_again_and_again(machine: Machine) -> None:
    machine.install("1.0.0", f"[ $(grep -c . $ROOT/starts) -lt 6 ] && exit 1; {END}")
    assert machine.run() == 0
    assert machine.starts == ["1.0.0"] * 6
    assert machine.state.failed == {}


def test_update_starts_the_other_version(machine: Machine) -> None:
    machine.install("2.0.0", END)
    link = "ln -sfn versions/agent-2.0.0 $ROOT/current-agent"
    machine.install("1.0.0", f"{link}; exit {EXIT_UPDATED}")
    assert machine.run() == 0
    assert machine.starts == ["1.0.0", "2.0.0"]


def test_sign_of_a_former_agent_is_none_of_this_one(machine: Machine, tmp_path: Path) -> None:
    machine.layout.alive.touch()
    with Manager(tmp_path / "notify") as manager:
        assert machine.run(NotifySettings(manager.address)) == 0
        assert manager.messages == []


def test_systemd_learns_that_the_agent_is_ready_and_the_launcher_alive(
    machine: Machine, tmp_path: Path
) -> None:
    wait = "until [ -e $ROOT/go ]; do sleep 0.01; done"
    machine.install("1.0.0", f"{wait}; while true; do {WORK} done")
    with Manager(tmp_path / "notify") as manager:
        ending = threading.Thread(target=manager.observe, args=[machine.layout.root])
        ending.start()
        assert machine.run(NotifySettings(manager.address, 0.02)) == 0
        ending.join()
        messages = manager.messages
    assert messages.count("READY=1") == 1
    assert messages.index("READY=1") >= 2  # not before the agent shows that it is alive
    assert messages.count("WATCHDOG=1") >= 5


class Manager:
    """The service manager, which gets messages."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(self.address)
        self._messages: list[str] = []

    @property
    def messages(self) -> list[str]:
        while True:
            try:
                self._messages.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self._messages

    def observe(self, root: Path) -> None:
        """Let the agent begin to work, and end the launcher once it is ready."""
        block_until(lambda: len(self.messages) >= 2)
        (root / "go").touch()
        block_until(lambda: "READY=1" in self.messages and self.messages.count("WATCHDOG=1") >= 5)
        os.kill(os.getpid(), signal.SIGTERM)

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def test_third_boot_of_a_trial_is_the_last(machine: Machine) -> None:
    machine.install("2.0.0", END)
    machine.begin_trial("2.0.0")
    assert [choose_version(machine.layout) for _ in range(4)] == ["2.0.0"] * 3 + ["1.0.0"]


def test_first_version_has_nothing_to_return_to(machine: Machine) -> None:
    machine.begin_trial("1.0.0", None)
    fail_trial(machine.layout, "1.0.0", "it hung")
    assert machine.state.trial is not None
    assert machine.layout.current_version(AGENT) == "1.0.0"


@pytest.mark.parametrize("version", ["1.0.0", "1.5.0"])
def test_only_the_version_on_trial_fails(machine: Machine, version: str) -> None:
    machine.install("2.0.0", END)
    machine.begin_trial("2.0.0")
    fail_trial(machine.layout, version, "it hung")
    assert machine.layout.current_version(AGENT) == "2.0.0"
    assert machine.state.failed == {}


def test_agent_does_not_speak_for_the_launcher(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install("1.0.0", f"env > $ROOT/environment; {WORK} {END}")
    monkeypatch.chdir(tmp_path)
    with Manager(tmp_path / "notify") as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
        monkeypatch.setenv("WATCHDOG_USEC", "20000000")
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        assert main([str(machine.layout.root)]) == 0
        assert "WATCHDOG=1" in manager.messages
    environment = (machine.layout.root / "environment").read_text()
    assert "NOTIFY_SOCKET" not in environment
    assert "WATCHDOG" not in environment


def test_launcher_needs_one_argument() -> None:
    assert main([]) == 2
