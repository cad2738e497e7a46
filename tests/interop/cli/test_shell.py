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
from tests.support.machine.commands import run_command, shell_service, start_command
from tests.support.machine.running import DEADLINE, Server, run_server


def start_server(directory: Path, exits: int | None = 0) -> AbstractAsyncContextManager[Server]:
    """Start a server with a shell that has no prompt, so that its output starts at a line."""
    config = {"services": [shell_service(directory)]}
    # A killed server leaves files in the directory for temporary files.
    around = {"PS1": "", "TMPDIR": str(directory)}
    return run_server(config, directory, exits=exits, environment=around)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Server]:
    async with start_server(tmp_path) as server:
        await server.wait_for_status(state="running")
        yield server


def address_arguments(server: Server) -> tuple[str, str]:
    return "--address", f"localhost:{server.port}"


class FakeTerminal:
    """A pseudo terminal, with the end of its user."""

    def __init__(self) -> None:
        self.person, self.inside = pty.openpty()
        self.settings = termios.tcgetattr(self.inside)
        self.seen = ""

    def resize(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.person, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self.person, text.encode())

    async def wait_for(self, text: str) -> None:
        """Wait for the text and forget the output up to it."""
        await asyncio.to_thread(self._read_until, text)
        self.seen = self.seen.partition(text)[2]

    def _read_until(self, text: str) -> None:
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            readable, _, _ = select.select([self.person], [], [], max(0, end - time.monotonic()))
            assert readable, f"no {text!r}: {self.seen!r}"
            self.seen += os.read(self.person, 4096).decode(errors="replace")

    def close(self) -> None:
        os.close(self.person)
        os.close(self.inside)


@contextlib.asynccontextmanager
async def open_shell(*arguments: str) -> AsyncIterator[tuple[FakeTerminal, Any]]:
    """Run `cogwork shell`, and check that it restores the terminal settings."""
    window = FakeTerminal()
    window.resize(91, 29)
    try:
        async with start_command(
            "shell", *arguments, stdin=window.inside, stdout=window.inside, stderr=window.inside
        ) as process:
            await window.wait_for("press Ctrl-] to leave\r\n")
            yield window, process
            async with asyncio.timeout(DEADLINE):
                await process.wait()
            assert termios.tcgetattr(window.inside) == window.settings
    finally:
        window.close()


async def test_terminal_size_follows_the_window(machine: Server) -> None:
    async with open_shell(*address_arguments(machine)) as (window, process):
        window.type("stty size\r")
        await window.wait_for("\n29 91\r\n")
        window.resize(70, 20)
        process.send_signal(signal.SIGWINCH)
        # The shell may answer before the new size arrives.
        window.type("while [ \"$(stty size)\" != '20 70' ]; do sleep 0.01; done; echo re'sized'\r")
        await window.wait_for("\nresized\r\n")
        window.type("exit 3\r")
    assert process.returncode == 0


async def test_keys_are_sent_to_the_machine(machine: Server) -> None:
    async with open_shell(*address_arguments(machine)) as (window, process):
        window.type("sh -c 'echo rea''dy; exec sleep 1000'\r")
        await window.wait_for("\nready\r\n")
        window.type("\x03")
        window.type("echo sta'tus' $?\r")
        await window.wait_for("status 130")
        window.type("\x04")
    assert process.returncode == 0


async def test_ctrl_bracket_leaves_the_shell(machine: Server) -> None:
    async with open_shell(*address_arguments(machine)) as (window, process):
        window.type("sh -c 'echo rea''dy; exec sleep 1000'\r")
        await window.wait_for("\nready\r\n")
        window.type("\x1d")
    assert process.returncode == 0


async def test_lost_machine_is_reported_and_the_terminal_restored(tmp_path: Path) -> None:
    async with start_server(tmp_path, exits=None) as server:
        await server.wait_for_status(state="running")
        async with open_shell(*address_arguments(server)) as (window, process):
            window.type("echo rea''dy\r")
            await window.wait_for("\nready\r\n")
            server.signal(signal.SIGKILL)
            await window.wait_for("connection to the machine was lost")
    assert process.returncode == 1


async def test_commands_can_be_piped(machine: Server, tmp_path: Path) -> None:
    told = await run_command("shell", *address_arguments(machine), typed="pwd\n")
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
async def test_missing_shell_is_reported(
    tmp_path: Path, names: list[str], arguments: list[str], words: str
) -> None:
    config = {"services": [shell_service(tmp_path, name) for name in names]}
    async with run_server(config, tmp_path) as server:
        await server.wait_for_status(state="running")
        told = await run_command("shell", *arguments, *address_arguments(server))
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(words)
