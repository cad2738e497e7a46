"""A process manager with small programs, and the events that it records."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

from cogwork.config.schema.process import ProcessConfig
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock, SystemClock
from cogwork.processes.context import ProcessContext
from cogwork.processes.manager import ProcessManager
from cogwork.robot.hosts import ProcessState, ProcessStatus
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.reaper import Reaper

DEADLINE = 60.0
QUICK = RetryPolicy(0.02, 0.02)


def shell(name: str, script: str, **settings: Any) -> ProcessConfig:
    """Return a process that runs a shell script, and gets half a second to stop."""
    stop = {"stop_timeout": "500ms", **settings}
    return ProcessConfig.model_validate({"id": name, "name": "sh", "args": ["-c", script], **stop})


class ManagedProcesses:
    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str],
        clock: Clock,
        retry: RetryPolicy,
        **how: Any,
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self._programs = ProgramHost(clock, Reaper())
        self.manager = ProcessManager(
            ProcessContext(
                self._programs,
                home,
                {"PATH": os.environ["PATH"], **environment},
                lambda event, details: self.events.append({"event": event, **details}),
                retry,
                redact=lambda text: text.replace("hunter2", "***"),
            ),
            **how,
        )

    def apply(self, *configs: ProcessConfig, withheld: frozenset[str] = frozenset()) -> None:
        self.manager.apply(configs, withheld)

    def status(self, name: str = "p") -> ProcessStatus:
        return next(status for status in self.manager.statuses() if status.id == name)

    async def wait_for(
        self, state: ProcessState, name: str = "p", restarts: int = 0
    ) -> ProcessStatus:
        return await self.wait_until(
            lambda: self.status(name).state is state and self.status(name).restarts >= restarts,
            name,
        )

    async def wait_until(self, is_so: Callable[[], bool], name: str = "p") -> ProcessStatus:
        await wait_until(is_so)
        return self.status(name)

    async def aclose(self, timeout: float = DEADLINE) -> list[str]:
        late = await self.manager.aclose(timeout)
        await self._programs.aclose()
        return late


@contextlib.asynccontextmanager
async def run_processes(
    home: Path,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    retry: RetryPolicy = QUICK,
    **how: Any,
) -> AsyncIterator[ManagedProcesses]:
    managed = ManagedProcesses(home, environment or {}, clock or SystemClock(), retry, **how)
    try:
        yield managed
    finally:
        await managed.aclose()


async def read_file(path: Path, wanted: str = "") -> str:
    """Return the text of a file once it exists and has the text."""

    def has_text() -> bool:
        return path.exists() and bool(text := path.read_text()) and wanted in text

    await wait_until(has_text)
    return path.read_text()
