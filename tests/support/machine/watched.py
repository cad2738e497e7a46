"""A server that is observed during an attack: by a bystander, from inside, and by the system."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.support.machine import bystander as bystander_program
from tests.support.machine.bystander import Report
from tests.support.machine.inside.sitecustomize import EVERY, FILE, LAYOUT
from tests.support.machine.running import Config, Server, run_server
from tests.support.own_time import own_time
from tests.support.sizes import limit
from tests.support.waiting import pass_time, wait_until

MIB = 1 << 20
LONGEST_TURN = 100.0
"""Milliseconds that the server's loop may compute without turning."""
USUAL_SECONDS = 0.014
"""Time of the computation in `slowness` at usual speed."""
ATTEMPTS = 5
QUIET = 0.3
"""The share of a processor that a server without work may take; it is asked every 10 ms."""

FAKES: Config = {
    "components": [
        {"name": name, "api": f"rdk:component:{kind}", "model": "fake", "attributes": attributes}
        for name, kind, attributes in (
            ("s", "sensor", {}),
            ("m", "motor", {"position_reporting": True}),
            ("b", "board", {"analogs": [{"name": "a"}]}),
            ("w", "switch", {}),
            ("g", "generic", {}),
        )
    ],
    "services": [{"name": "gs", "api": "rdk:service:generic", "model": "fake"}],
}


@dataclass
class Phase:
    """Measurements during one phase of an attack."""

    name: str
    bystander: Report
    late: float
    """Milliseconds that a turn of the server's loop came too late, at worst."""
    busy: float
    """Milliseconds of those that the loop itself computed; the rest is this computer's."""
    growth: float
    """MiB that the server needs more than before."""
    took: float
    """Seconds, without those in which other virtual machines had our processors."""

    def __str__(self) -> str:
        by = self.bystander
        return (
            f"{self.name:28} {by.calls:5} calls  p50 {by.p50:6.1f}  p99 {by.p99:6.1f}  "
            f"max {by.longest:6.1f} (own {by.own:5.1f})  loop late {self.late:6.1f}, "
            f"busy {self.busy:6.1f}  grew {self.growth:6.1f} MiB  {by.failed} failures"
        )


def slowness() -> float:
    """Return how much slower this computer is at the moment than one of usual speed, at least 1.

    The processors of a virtual machine may run at a fifth of their speed for minutes, and the
    system counts that as time computed.
    """
    times = []
    for _ in range(3):
        start = time.thread_time()
        sum(number * number for number in range(200_000))
        times.append(time.thread_time() - start)
    return max(1.0, statistics.median(times) / USUAL_SECONDS)


def find_front(server: int) -> psutil.Process:
    """Return the front process of a server."""
    return next(each for each in psutil.Process(server).children() if is_front(each))


def is_front(process: psutil.Process) -> bool:
    try:
        return "cogwork.front.main" in process.cmdline()
    except psutil.NoSuchProcess:  # it has just ended
        return False


class WatchedServer:
    def __init__(self, server: Server, bystander: asyncio.subprocess.Process, lag: Path) -> None:
        self.server = server
        self.process = psutil.Process(server.pid)
        self.front = find_front(server.pid)
        self._bystander = bystander
        self._lag = lag
        self._size = 0.0
        self._began = 0.0

    async def size(self) -> float:
        """Return the MiB that it uses, without memory that the allocator keeps for reuse."""
        self._write(*self._lags(), True)
        await wait_until(lambda: not LAYOUT.unpack(self._lag.read_bytes())[2], every=0.002)
        size: int = self.process.memory_info().rss + self.front.memory_info().rss
        return size / MIB

    def descriptors(self) -> int:
        return self.process.num_fds() + self.front.num_fds()

    async def begin(self) -> None:
        """Start a phase; earlier measurements do not count."""
        self._size = await self.size()
        await self._report()
        self._write(0.0, 0.0, False)
        self._began = own_time()

    async def end(self, name: str) -> Phase:
        took = own_time() - self._began
        late, busy = self._lags()
        report = await self._report()
        growth = await self.size() - self._size
        phase = Phase(name, report, late * 1000, busy * 1000, growth, took)
        print(phase)
        assert self.server.process.returncode is None, f"it died:\n{self.server.output[-5000:]}"
        return phase

    async def attack(
        self,
        name: str,
        attack: Callable[[], Awaitable[None]],
        *,
        longest_turn: float = LONGEST_TURN,
        longest: float = math.inf,
        highest_p99: float = math.inf,
    ) -> Phase:
        """Attack, and attack again while a turn of the loop, the attack or a call takes too long.

        A call without an answer took too long in any case. What takes the server too long does so
        at every attempt. A computer that stalls does so once, and the system counts that as time
        computed.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                await pass_time(2 ** (attempt - 1))  # such a neighbor may go away
            await self.begin()
            await attack()
            await pass_time(2 * EVERY)  # a turn is measured when it is over
            phase = await self.end(name)
            if (
                phase.busy < longest_turn
                and phase.took < longest
                and phase.bystander.p99 < highest_p99
                and not phase.bystander.unanswered
            ):
                break
        return phase

    async def reset_longest_turn(self) -> None:
        """Start to measure the longest iteration of the loop again."""
        self._write(0.0, 0.0, False)

    async def read_longest_turn(self) -> float:
        """Return the milliseconds that the longest iteration since then computed."""
        await pass_time(2 * EVERY)  # the loop is measured with that period
        return self._lags()[1] * 1000

    async def measure_idle(self, seconds: float = 1.0) -> Phase:
        """Measure a phase without an attack."""
        await self.begin()
        await pass_time(seconds)
        return await self.end("idle")

    async def wait_until_calm(self, within: float = limit(5)) -> float:
        """Return the seconds until its processor load is low."""
        began = time.monotonic()
        self.process.cpu_percent()
        while time.monotonic() - began < within:
            await pass_time(0.25)  # a share is measured over time
            if self.process.cpu_percent() <= QUIET * 100 * slowness():
                return time.monotonic() - began
        raise AssertionError(f"it still computes after {within:g} s")

    def _lags(self) -> tuple[float, float]:
        late, busy, _ = LAYOUT.unpack(self._lag.read_bytes())
        if busy * 1000 > LONGEST_TURN / 2:
            busy /= slowness()
        return late, busy

    def _write(self, late: float, busy: float, trim: bool) -> None:
        with self._lag.open("r+b") as file:  # in place: the server has it mapped
            file.write(LAYOUT.pack(late, busy, trim))

    async def _report(self) -> Report:
        assert self._bystander.stdin is not None
        assert self._bystander.stdout is not None
        self._bystander.stdin.write(b"\n")
        line = await asyncio.wait_for(self._bystander.stdout.readline(), 20)
        return Report(**json.loads(line))


@contextlib.asynccontextmanager
async def run_watched(
    directory: Path,
    config: Config = FAKES,
    log_in: Callable[[int], str] = lambda _: "",
) -> AsyncIterator[WatchedServer]:
    """`log_in` returns the token of the bystander, given the port; empty if it needs none."""
    lag = directory / "lag"
    lag.write_bytes(LAYOUT.pack(0, 0, False))
    inside = [str(Path(__file__).parent / "inside"), *os.environ.get("PYTHONPATH", "").split(":")]
    environment = {FILE: str(lag), "PYTHONPATH": ":".join(inside)}
    async with run_server(config, directory, environment=environment) as server:
        await server.out.wait_for("applied in")  # the status may need a login
        bystander = await asyncio.create_subprocess_exec(
            sys.executable,
            bystander_program.__file__,
            str(server.port),
            *filter(None, [log_in(server.port)]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ},
        )
        try:
            yield WatchedServer(server, bystander, lag)
        finally:
            bystander.kill()
            await bystander.communicate()
