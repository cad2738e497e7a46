"""Small programs as child processes, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from cogwork.core.clock import Clock, SystemClock
from cogwork.modules.limits import ProcessLimits
from cogwork.modules.output import OutputStream
from cogwork.modules.process import Child, LaunchSpec

T = TypeVar("T")

DEADLINE = 20.0


class Said:
    """The lines of a child, as they come."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        self._news = asyncio.Event()

    def __call__(self, stream: OutputStream, line: str) -> None:
        (self.out if stream is OutputStream.STDOUT else self.err).append(line)
        self._news.set()

    async def line(self, wanted: Callable[[str], bool] = bool) -> str:
        """The first one on stdout that is as wanted, awaited."""
        async with asyncio.timeout(DEADLINE):
            while True:
                for line in self.out:
                    if wanted(line):
                        return line
                self._news.clear()
                await self._news.wait()


def python(source: str, limits: ProcessLimits | None = None, **environment: str) -> LaunchSpec:
    # Without site-packages it starts in a third of the time.
    return _launch((sys.executable, "-S", "-u", "-c", source), limits, environment)


def sh(script: str, limits: ProcessLimits | None = None, **environment: str) -> LaunchSpec:
    return _launch(("/bin/sh", "-c", script), limits, environment)


async def started(
    launch: LaunchSpec, said: Said | None = None, clock: Clock | None = None
) -> Child:
    return await Child.start(launch, said or Said(), clock or SystemClock())


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable


def alive(pid: int) -> bool:
    """Or a zombie."""
    return Path(f"/proc/{pid}").exists()


async def gone(*pids: int) -> None:
    """Also when somebody else, such as init, reaps them."""
    async with asyncio.timeout(DEADLINE):
        while any(alive(pid) for pid in pids):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def _launch(
    argv: tuple[str, ...], limits: ProcessLimits | None, environment: dict[str, str]
) -> LaunchSpec:
    return LaunchSpec(argv, {**os.environ, **environment}, Path("/"), limits or ProcessLimits())
