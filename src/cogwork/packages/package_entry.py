"""A required package, and the progress of its download."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from cogwork.config.schema.machine import PackageConfig
from cogwork.packages.sizes import format_size
from cogwork.packages.slot import PackageSlot
from cogwork.robot.hosts import PackageState as State

_STEP: Final = 10
"""Percentage points between two notifications of progress. Each notification changes the reason
shown for waiting resources, and every such change is recorded."""


@dataclass
class PackageEntry:
    """A required directory, which several packages may share."""

    config: PackageConfig
    slot: PackageSlot
    since: float
    state: State = State.WAITING
    reason: str = ""
    done: int = 0
    total: int | None = None
    task: asyncio.Task[None] | None = None

    def update(
        self,
        now: float,
        state: State,
        reason: str = "",
        done: int | None = None,
        total: int | None = None,
    ) -> bool:
        """Update the state. Return whether observers must be notified."""
        before = self._step
        if self.state is not state:
            self.since = now
        self.state, self.reason = state, reason
        if done is not None:
            self.done, self.total = done, total
        return self._step != before

    def describe(self) -> str:
        match self.state:
            case State.WAITING:
                return "waits for its download"
            case State.DOWNLOADING:
                return f"is being downloaded{self._describe_progress()}"
            case State.UNPACKING:
                return f"is being unpacked{self._describe_progress()}"
            case State.READY:
                return "is ready"
            case State.FAILED:
                return f"is not available: {self.reason}"

    @property
    def _step(self) -> tuple[State, str, int]:
        return self.state, self.reason, self._percent // _STEP

    def _describe_progress(self) -> str:
        if not self.total:
            return ""
        return f": {self._percent // _STEP * _STEP} % of {format_size(self.total)}"

    @property
    def _percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0
