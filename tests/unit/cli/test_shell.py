"""`cogwork shell` as a person runs it: in a terminal, against the real executable."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.running import DEADLINE, Server, running
from tests.unit.cli.commands import a_shell, command, said


def started(directory: Path, exits: int | None = 0) -> AbstractAsyncContextManager[Server]:
    """With a shell that has no prompt: what it says begins a line."""
    config = {"services": [a_shell(directory)]}
    # A server that is killed leaves something in the directory of temporary files.
    around = {"PS1": "", "TMPDIR": str(directory)}
    return running(config, directory, exits=exits, environment=around)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Server]:
    async with started(tmp_path) as server:
        await server.until(state="running")
        yield server


def at(server: Server) -> tuple[str, str]:
    return "--address", f"localhost:{server.port}"


class Window:
    """A terminal with a person in front of it."""

    def __init__(self) -> None:
        self.person, self.inside = pty.openpty()
        self.settings = termios.tcgetattr(self.inside)
        self.seen = ""

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.person, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self.person, text.encode())

    async def shows(self, text: str) -> None:
        """From here on: what was seen is forgotten with it."""
        await asyncio.to_thread(self._watch, text)
        self.seen = self.seen.partition(text)[2]

    def _watch(self, text: str) -> None:
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            readable, _, _ = select.select([self.person], [], [], max(0, end - time.monotonic()))
            assert readable, f"no {text!r}: {self.seen!r}"
            self.seen += os.read(self.person, 4096).decode(errors="replace")

    def close(self) -> None:
        os.close(self.person)
        os.close(self.inside)


@contextlib.asynccontextmanager
async def opened(*arguments: str) -> AsyncIterator[tuple[Window, Any]]:
    """What it left the terminal like must be what it found."""
    window = Window()
    window.resize(91, 29)
    try:
        async with command(
            "shell", *arguments, stdin=window.inside, stdout=window.inside, stderr=window.inside
        ) as process:
            await window.shows("press Ctrl-] to leave\r\n")
            yield window, process
            async with asyncio.timeout(DEADLINE):
                await process.wait()
            assert termios.tcgetattr(window.inside) == window.settings
    finally:
        window.close()


async def test_it_is_a_terminal_of_the_same_size(machine: Server) -> None:
    async with opened(*at(machine)) as (window, process):
        window.type("stty size\r")
        await window.shows("\n29 91\r\n")
        window.resize(70, 20)
        process.send_signal(signal.SIGWINCH)
        # The shell may be asked ahead of it.
        window.type("while [ \"$(stty size)\" != '20 70' ]; do sleep 0.01; done; echo re'sized'\r")
        await window.shows("\nresized\r\n")
        window.type("exit 3\r")
    assert process.returncode == 0


async def test_keys_go_to_the_machine_and_not_to_the_command(machine: Server) -> None:
    async with opened(*at(machine)) as (window, process):
        window.type("sh -c 'echo rea''dy; exec sleep 1000'\r")
        await window.shows("\nready\r\n")
        window.type("\x03")
        window.type("echo sta'tus' $?\r")
        await window.shows("status 130")
        window.type("\x04")
    assert process.returncode == 0


async def test_ctrl_bracket_leaves_whatever_runs(machine: Server) -> None:
    async with opened(*at(machine)) as (window, process):
        window.type("sh -c 'echo rea''dy; exec sleep 1000'\r")
        await window.shows("\nready\r\n")
        window.type("\x1d")
    assert process.returncode == 0


async def test_a_machine_that_goes_is_told_and_the_terminal_restored(tmp_path: Path) -> None:
    async with started(tmp_path, exits=None) as server:
        await server.until(state="running")
        async with opened(*at(server)) as (window, process):
            window.type("echo rea''dy\r")
            await window.shows("\nready\r\n")
            server.signal(signal.SIGKILL)
            await window.shows("UNAVAILABLE: ")
    assert process.returncode == 1


async def test_commands_may_come_from_a_pipe(machine: Server, tmp_path: Path) -> None:
    told = await said("shell", *at(machine), typed="pwd\n")
    assert (told.code, told.err) == (0, "")
    assert f"\n{tmp_path}\r\n" in told.out


@pytest.mark.parametrize(
    ("names", "arguments", "words"),
    [
        ([], [], "the machine has no shell; add "),
        (["one", "two"], [], "the machine has several shells; choose one with --name: one, two"),
        (["one"], ["--name", "won"], 'the machine has no shell "won"; '),
    ],
    ids=["none", "several", "another"],
)
async def test_a_shell_that_is_not_there_is_told(
    tmp_path: Path, names: list[str], arguments: list[str], words: str
) -> None:
    config = {"services": [a_shell(tmp_path, name) for name in names]}
    async with running(config, tmp_path) as server:
        await server.until(state="running")
        told = await said("shell", *arguments, *at(server))
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(words)
