"""The launcher and agents that do not start: the former version returns by itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.sizes import limit
from tests.support.waiting import block_until

from cogwork.agent.launcher_archive import write_launcher
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.store import StateStore
from cogwork.core.versions.product import Product

AGENT = Product.AGENT
GOOD = 'while true; do touch "$5/agent.alive"; sleep 0.2; done'
"""What the programs do. They get: -I -m MODULE run --root DIRECTORY, so $5 is the directory."""
QUICK = "import sys, pathlib; from cogwork.agent.launcher import Launcher, Layout; "
START = "sys.exit(Launcher(Layout(pathlib.Path(sys.argv[1])), 2, 0.1).run())"


class Machine:
    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.starts = root / "starts"

    def install(self, version: str, script: str) -> None:
        program = self.layout.slot(AGENT, version) / "bin" / "python"
        program.parent.mkdir(parents=True)
        # $6 is the directory: "-I -m module run --root DIRECTORY".
        body = f'#!/bin/sh\nset -- "$1" "$2" "$3" "$4" "$6"\necho {version} >> {self.starts}\n'
        program.write_text(f"{body}{script}\n")
        program.chmod(0o755)

    def begin_update(self, version: str) -> None:
        states = StateStore(self.layout)
        current = self.layout.current_version(AGENT)
        states[AGENT] = states[AGENT].begin_trial(version, current, time.time())
        self.layout.switch(AGENT, version)

    def started(self) -> list[str]:
        return self.starts.read_text().split() if self.starts.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.install("1.0.0", GOOD)
    machine.layout.switch(AGENT, "1.0.0")
    return machine


def run_until(
    machine: Machine,
    command: list[str],
    is_done: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> None:
    launcher = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    try:
        block_until(lambda: launcher.poll() is not None or is_done(), limit(20), every=0.05)
        assert launcher.returncode is None
    finally:
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(limit(20)) == 0


def quick(machine: Machine) -> list[str]:
    return [sys.executable, "-c", QUICK + START, str(machine.layout.root)]


def test_end_that_was_asked_for_is_not_reported(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    run_until(machine, quick(machine), lambda: machine.started() == ["1.0.0"])
    assert capfd.readouterr().err == ""


def test_systemd_learns_that_the_agent_is_ready_and_the_launcher_alive(machine: Machine) -> None:
    root = machine.layout.root
    wait = f'until [ -e "$5/go" ]; do sleep 0.1; done; env > {root}/environment; {GOOD}'
    machine.install("2.0.0", wait)
    machine.layout.switch(AGENT, "2.0.0")
    write_launcher(machine.layout.launcher)
    messages: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.bind(str(root / "notify"))

        def has_reported() -> bool:
            try:
                messages.append(manager.recv(4096).decode())
            except BlockingIOError:
                return False
            if messages.count("WATCHDOG=1") == 3:
                (root / "go").touch()
            return messages[-2:] == ["READY=1", "WATCHDOG=1"]

        run_until(
            machine,
            [sys.executable, "-I", "-S", str(machine.layout.launcher), str(root)],
            has_reported,
            {"NOTIFY_SOCKET": str(root / "notify"), "WATCHDOG_USEC": "200000"},
        )
    assert messages.index("READY=1") >= 3
    assert messages.count("READY=1") == 1
    # Whatever the agent starts would speak for the launcher.
    assert "NOTIFY_SOCKET" not in (root / "environment").read_text()


def test_packed_launcher_needs_only_the_standard_library(machine: Machine) -> None:
    write_launcher(machine.layout.launcher)
    # Isolated, and without site-packages.
    command = [sys.executable, "-I", "-S", str(machine.layout.launcher)]
    run_until(machine, [*command, str(machine.layout.root)], lambda: machine.started() == ["1.0.0"])
