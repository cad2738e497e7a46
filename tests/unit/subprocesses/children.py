"""Helpers that start small programs as child processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tests.support.waiting import wait_until

from cogwork.core.clock import Clock, SystemClock
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.limits import ProcessLimits
from cogwork.subprocesses.output import OutputStream
from cogwork.subprocesses.process import Child, LaunchSpec

T = TypeVar("T")

DEADLINE = 60.0


class OutputRecorder:
    """Records the output lines of a child."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        self._new_line = asyncio.Event()

    def __call__(self, stream: OutputStream, line: str) -> None:
        (self.out if stream is OutputStream.STDOUT else self.err).append(line)
        self._new_line.set()

    async def wait_for_line(self, matches: Callable[[str], bool] = bool) -> str:
        """Wait for the first line on stdout that matches."""
        async with asyncio.timeout(DEADLINE):
            while True:
                for line in self.out:
                    if matches(line):
                        return line
                self._new_line.clear()
                await self._new_line.wait()


def python_program(
    source: str, limits: ProcessLimits | None = None, **environment: str
) -> LaunchSpec:
    # Without site-packages Python starts three times as fast.
    return _make_launch((sys.executable, "-S", "-u", "-c", source), limits, environment)


def shell_script(
    script: str, limits: ProcessLimits | None = None, **environment: str
) -> LaunchSpec:
    return _make_launch(("/bin/sh", "-c", script), limits, environment)


async def start_child(
    launch: LaunchSpec, output: OutputRecorder | None = None, clock: Clock | None = None
) -> Child:
    host = ProgramHost(clock or SystemClock())
    return await Child.start(launch, output or OutputRecorder(), host)


async def wait_within(seconds: float, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable


def is_alive(pid: int) -> bool:
    """Return whether the process exists, even as a zombie."""
    return Path(f"/proc/{pid}").exists()


async def wait_until_gone(*pids: int) -> None:
    """Wait until the processes are gone, even when init or another process reaps them."""
    await wait_until(lambda: not any(is_alive(pid) for pid in pids))


def _make_launch(
    argv: tuple[str, ...], limits: ProcessLimits | None, environment: dict[str, str]
) -> LaunchSpec:
    return LaunchSpec(argv, {**os.environ, **environment}, Path("/"), limits or ProcessLimits())
