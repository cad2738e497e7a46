"""The context that all processes of a machine share: clock, environment and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.graph.limits import RETRY
from cogwork.subprocesses.host import ProgramHost


@dataclass(frozen=True, slots=True)
class ProcessContext:
    programs: ProgramHost
    home: Path
    """Directory in which the server stores its files."""
    environment: Mapping[str, str]
    """Environment variables of the server."""
    record_event: Callable[[str, Mapping[str, Any]], None] = lambda *_: None
    """Function that records an event in the machine's journal."""
    retry: RetryPolicy = RETRY
    """Back-off before a process is restarted."""
    get_withheld_variables: Callable[[], Collection[str]] = tuple
    """Function that returns the environment variables that processes currently do not inherit."""
    redact: Callable[[str], str] = str
    """Function that removes the secrets of the configuration from a text."""

    @property
    def clock(self) -> Clock:
        return self.programs.clock
