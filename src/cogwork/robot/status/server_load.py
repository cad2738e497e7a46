"""The load of the server, its programs and the computer."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import NamedTuple

from cogwork.core.clock import Clock
from cogwork.robot.status.loop_lag import LoopLag
from cogwork.robot.status.process_use import ProcessUse, read_process_tree

SAMPLE_INTERVAL = 2.0
"""Minimum seconds between two samples, regardless of the number of clients."""


class ComputerLoad(NamedTuple):
    cores: int
    load: float
    """Average number of processes that ran or waited for a core during the last minute."""
    memory_bytes: int
    memory_available_bytes: int


class LoadSample(NamedTuple):
    server: ProcessUse
    """Use by the server and the processes that it started, without `programs`."""
    programs: dict[int, ProcessUse]
    """Use by modules and configured processes, by process id."""
    computer: ComputerLoad


class ServerLoad:
    """Samples the load, but only when it is requested."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._sample: LoadSample | None = None
        self._sampled_at = 0.0
        self.loop_lag = LoopLag(clock)

    def sample(self, programs: Collection[int]) -> LoadSample:
        """Return the load. `programs` are the process ids of running modules and processes."""
        now = self._clock.monotonic()
        last = self._sample
        if last is None or now - self._sampled_at >= SAMPLE_INTERVAL:
            last = self._sample = self._read(programs)
            self._sampled_at = now
        return last

    def _read(self, programs: Collection[int]) -> LoadSample:
        uses = {pid: use for pid in programs if (use := read_process_tree(pid)) is not None}
        return LoadSample(self._read_server(programs), uses, _read_computer())

    def _read_server(self, programs: Collection[int]) -> ProcessUse:
        uptime = self._clock.monotonic() - self._started
        use = read_process_tree(os.getpid(), programs)
        if use is None:
            import psutil

            return ProcessUse(psutil.Process().memory_info().rss, time.process_time(), uptime)
        return use._replace(uptime_seconds=uptime)


def _read_computer() -> ComputerLoad:
    # Imported when first used: it takes 10 ms, and the server starts faster without it.
    import psutil

    memory = psutil.virtual_memory()
    return ComputerLoad(
        os.cpu_count() or 1, os.getloadavg()[0], int(memory.total), int(memory.available)
    )
