"""The process manager: runs the processes that are configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cogwork.config.process import ProcessConfig
from cogwork.processes.context import ProcessContext
from cogwork.programs.orphans import adopt_orphans
from cogwork.robot.process_host import ProcessState, ProcessStatus

if TYPE_CHECKING:
    from cogwork.processes.process import SupervisedProcess

_log = logging.getLogger("rdk.process")


class ProcessManager:
    def __init__(self, context: ProcessContext, *, untrusted: bool = False) -> None:
        """`untrusted`: people who configure the machine may not run programs of their own."""
        self._context = replace(context, get_withheld_variables=lambda: self._withheld)
        self._untrusted = untrusted
        self._withheld: frozenset[str] = frozenset()
        self._processes: dict[str, SupervisedProcess] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        """The last stop of each ID."""
        self._ending: dict[asyncio.Task[None], SupervisedProcess] = {}
        """Every process that is being stopped."""
        self._waiting: dict[str, ProcessStatus] = {}
        """Processes that are not started yet."""

    def apply(
        self,
        configs: Sequence[ProcessConfig],
        withheld: frozenset[str] = frozenset(),
        waiting: Mapping[str, str] | None = None,
    ) -> None:
        """Start, stop and restart processes to match the configuration; unchanged ones keep
        running.

        `withheld`: environment variables that processes started from now on do not inherit.
        `waiting`: processes that are not to be started yet, with the reason.
        """
        self._withheld = withheld
        self._waiting = {
            name: self._wait(name, why)
            for name, why in (waiting or {}).items()
            if not self._untrusted
        }
        wanted = {config.id: config for config in configs if self._may_run(config)}
        for name, process in tuple(self._processes.items()):
            if name not in wanted or _comparable(wanted[name]) != _comparable(process.config):
                self._stop_process(name)
        for name, config in wanted.items():
            if name in self._processes:
                self._processes[name].config = config
            else:
                self._add_process(_make_process(config, self._context))
        self._processes = {name: self._processes[name] for name in wanted}

    def statuses(self) -> list[ProcessStatus]:
        running = [process.status for process in self._processes.values()]
        return [*running, *self._waiting.values()]

    def configs(self) -> dict[str, ProcessConfig]:
        """Return those of the processes that are started, by ID."""
        return {name: process.config for name, process in self._processes.items()}

    @property
    def any_stopping(self) -> bool:
        return bool(self._ending)

    async def aclose(self, timeout: float) -> list[str]:
        """Stop all processes, and return the names of those that did not end in time.

        `timeout`: seconds after which every process is killed, even if its own timeout is longer.
        """
        for name in tuple(self._processes):
            self._stop_process(name)
        if not self._ending:
            return []
        ending = dict(self._ending)
        all_stopped = asyncio.gather(*ending, return_exceptions=True)
        await self._context.clock.wait({all_stopped}, timeout)
        late = [process.kill() for task, process in ending.items() if not task.done()]
        await asyncio.gather(*late, all_stopped, return_exceptions=True)
        return [f"process {process.id}" for process in ending.values() if process.was_killed]

    def _add_process(self, process: SupervisedProcess) -> None:
        # Lets the server find and end processes that a process leaves behind.
        adopt_orphans()
        self._processes[process.id] = process
        stopping = self._stopping.get(process.id)
        if stopping is None:
            process.start()
        else:
            stopping.add_done_callback(lambda _: self._start_if_wanted(process))

    def _start_if_wanted(self, process: SupervisedProcess) -> None:
        if self._processes.get(process.id) is process:
            process.start()

    def _stop_process(self, name: str) -> None:
        process = self._processes.pop(name)
        before = self._stopping.get(name)
        task = asyncio.get_running_loop().create_task(_stop_after(process, before))
        self._stopping[name] = task
        self._ending[task] = process
        task.add_done_callback(lambda done: self._on_stopped(name, done))

    def _on_stopped(self, name: str, task: asyncio.Task[None]) -> None:
        del self._ending[task]
        if self._stopping.get(name) is task:
            del self._stopping[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("process %s could not be stopped: %s", name, error)

    def _wait(self, name: str, why: str) -> ProcessStatus:
        before = self._waiting.get(name)
        since = before.since if before is not None else self._context.clock.time()
        return ProcessStatus(name, ProcessState.PENDING, since, why, 0, None)

    def _may_run(self, config: ProcessConfig) -> bool:
        if self._untrusted:
            _log.error(
                "process %s is not started: the server runs with -untrusted-env, which disables "
                "processes",
                config.id,
            )
        return not self._untrusted


def _make_process(config: ProcessConfig, context: ProcessContext) -> SupervisedProcess:
    """Import the class with the first process: a machine without processes starts faster."""
    from cogwork.processes.process import SupervisedProcess

    return SupervisedProcess(config, context)


async def _stop_after(process: SupervisedProcess, before: asyncio.Task[None] | None) -> None:
    if before is not None:
        await asyncio.wait({before})
    await process.stop()


def _comparable(config: ProcessConfig) -> dict[str, Any]:
    """Return what requires a restart when it changes: all but whether the output is logged."""
    return config.model_dump(exclude={"log"})
