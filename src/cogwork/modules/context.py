"""The context that all modules of a machine share: clock, directories, deadlines and callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cogwork.core import duration
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.graph.limits import RETRY
from cogwork.graph.name import Api, ModelName
from cogwork.logs.rules import LevelRules
from cogwork.modules.environment import CloudIds
from cogwork.subprocesses.host import ProgramHost

_log = logging.getLogger("rdk.modmanager")

RecordEvent = Callable[[str, Mapping[str, Any]], None]
"""A function that records an event in the machine's journal."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Deadlines for operations of a module, in seconds."""

    start: float = 300.0
    """From the start of the module until it is ready."""
    validate: float = 5.0
    add: float = 120.0
    remove: float = 5.0
    drain: float = 20.0
    """For closing all resources of the module, before its process is stopped."""
    probe: float = 10.0
    """For a health check; also the pause between two health checks."""


@dataclass(frozen=True, slots=True)
class ModuleContext:
    programs: ProgramHost
    socket_directory: Path
    """Directory that only the server's user can access."""
    open_parent_socket: Callable[[str, Path], AbstractContextManager[str]]
    """Function that opens a socket for the named module in the given folder. The module calls the
    machine on this socket."""
    home: Path
    environment: Mapping[str, str]
    get_log_rules: Callable[[], LevelRules]
    """Function that returns the current log level rules."""
    notify_changed: Callable[[], None]
    """Function to call when the resources that a module can build have changed."""
    record_event: RecordEvent = lambda *_: None
    is_in_process: Callable[[Api, ModelName], bool] = lambda *_: False
    """Function that returns whether the model is built in, so that no module provides it."""
    resource_modules: dict[str, str] = field(default_factory=dict)
    """Module names by the full names of the resources that they provide. The log uses the same
    dict, to apply the log level of a module to its resources."""
    cloud: CloudIds = field(default_factory=CloudIds)
    deadlines: Deadlines = field(default_factory=Deadlines)
    retry: RetryPolicy = RETRY
    """Back-off before a failed module is restarted."""
    get_withheld_variables: Callable[[], Collection[str]] = tuple
    """Function that returns the environment variables that modules currently do not inherit."""
    redact: Callable[[str], str] = str
    """Function that removes the secrets of the configuration from a text."""

    @property
    def clock(self) -> Clock:
        return self.programs.clock


def read_deadlines(environment: Mapping[str, str]) -> Deadlines:
    """Read the deadlines from the public environment variables. Log and ignore invalid
    durations."""
    defaults = Deadlines()
    return replace(
        defaults,
        start=_read_seconds(environment, "VIAM_MODULE_STARTUP_TIMEOUT", defaults.start),
        add=_read_seconds(environment, "VIAM_RESOURCE_CONFIGURATION_TIMEOUT", defaults.add),
    )


def _read_seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    if not text:
        return default
    try:
        seconds = duration.parse(text)
    except ValueError as error:
        _log.warning("the environment variable %s has no effect: %s", name, error)
        return default
    return seconds if seconds > 0 else default
