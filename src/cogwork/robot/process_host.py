"""The machine's interface to the processes of its configuration, independent of what runs them."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class ProcessState(enum.StrEnum):
    PENDING = "pending"
    """It is being started, or waits until its former process has ended."""
    RUNNING = "running"
    FINISHED = "finished"
    """It ran once and succeeded."""
    UNHEALTHY = "unhealthy"
    """It failed, and is restarted unless it runs only once."""
    STOPPING = "stopping"


class ProcessStatus(NamedTuple):
    id: str
    state: ProcessState
    since: float
    error: str
    restarts: int
    pid: int | None


class ProcessHost(Protocol):
    def statuses(self) -> Iterable[ProcessStatus]: ...


class NoProcesses:
    """A host without processes."""

    def statuses(self) -> Iterable[ProcessStatus]:
        return ()
