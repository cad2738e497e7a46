"""Small programs as child processes, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from cogwork.core.clock import Clock, SystemClock
from cogwork.modules.limits import Limits
from cogwork.modules.output import Stream
from cogwork.modules.process import Child, Launch

T = TypeVar("T")

DEADLINE = 20.0


class Said:
    """The lines of a child, as they come."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        self._news = asyncio.Event()

    def __call__(self, stream: Stream, line: str) -> None:
        (self.out if stream is Stream.STDOUT else self.err).append(line)
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


def python(source: str, limits: Limits | None = None, **environment: str) -> Launch:
    # Without site-packages it starts in a third of the time.
    return _launch((sys.executable, "-S", "-u", "-c", source), limits, environment)


def sh(script: str, limits: Limits | None = None, **environment: str) -> Launch:
    return _launch(("/bin/sh", "-c", script), limits, environment)


async def started(launch: Launch, said: Said | None = None, clock: Clock | None = None) -> Child:
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


def _launch(argv: tuple[str, ...], limits: Limits | None, environment: dict[str, str]) -> Launch:
    return Launch(argv, {**os.environ, **environment}, Path("/"), limits or Limits())
