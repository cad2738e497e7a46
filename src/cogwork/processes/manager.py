"""The process manager: runs the configured processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cogwork.config.schema.process import ProcessConfig
from cogwork.core.supervised_set import SupervisedSet
from cogwork.processes.context import ProcessContext
from cogwork.robot.hosts import ProcessState, ProcessStatus
from cogwork.subprocesses.orphans import adopt_orphans

if TYPE_CHECKING:
    from cogwork.processes.process import SupervisedProcess

_log = logging.getLogger("rdk.process")


class ProcessManager:
    def __init__(self, context: ProcessContext, *, untrusted: bool = False) -> None:
        """Create a manager without processes. `untrusted`: refuse to run the configured
        programs."""
        self._context = replace(context, get_withheld_variables=lambda: self._withheld)
        self._untrusted = untrusted
        self._withheld: frozenset[str] = frozenset()
        self._processes: SupervisedSet[ProcessConfig, SupervisedProcess] = SupervisedSet(
            "process", partial(_make_process, context=self._context), _comparable, _log
        )
        self._waiting: dict[str, ProcessStatus] = {}
        """Processes that cannot be started yet."""

    def apply(
        self,
        configs: Sequence[ProcessConfig],
        withheld: frozenset[str] = frozenset(),
        waiting: Mapping[str, str] | None = None,
    ) -> None:
        """Start, stop and restart processes to match the configuration. Unchanged processes keep
        running.

        `withheld`: environment variables that processes do not inherit from now on. `waiting`:
        processes that cannot be started yet, and the reasons.
        """
        self._withheld = withheld
        self._waiting = {
            name: self._wait(name, why)
            for name, why in (waiting or {}).items()
            if not self._untrusted
        }
        self._processes.apply({config.id: config for config in configs if self._may_run(config)})

    def statuses(self) -> list[ProcessStatus]:
        running = [process.status for process in self._processes]
        return [*running, *self._waiting.values()]

    def configs(self) -> dict[str, ProcessConfig]:
        """Return the configurations of the started processes, by ID."""
        return {name: process.config for name, process in self._processes.by_name.items()}

    @property
    def any_stopping(self) -> bool:
        return bool(self._processes.stopping)

    async def aclose(self, timeout: float) -> list[str]:
        """Stop all processes. Return the names of processes that did not end in time.

        `timeout`: seconds after which every process is killed, even if its own timeout is longer.
        """
        self._processes.stop_all()
        stopping = dict(self._processes.stopping)
        if not stopping:
            return []
        all_stopped = asyncio.gather(*stopping, return_exceptions=True)
        await self._context.clock.wait({all_stopped}, timeout)
        late = [process.kill() for task, process in stopping.items() if not task.done()]
        await asyncio.gather(*late, all_stopped, return_exceptions=True)
        return [f"process {process.id}" for process in stopping.values() if process.was_killed]

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
    """Create a process. The class is imported here, so that machines without processes start
    faster."""
    # Let the server find and end the descendants that a process leaves behind.
    adopt_orphans()
    from cogwork.processes.process import SupervisedProcess

    return SupervisedProcess(config, context)


def _comparable(config: ProcessConfig) -> dict[str, Any]:
    """Return the settings whose change requires a restart: all but whether the output is logged."""
    return config.model_dump(exclude={"log"})
