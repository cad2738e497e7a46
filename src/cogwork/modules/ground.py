"""What all modules of a machine stand on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.graph.limits import Limits as Pauses
from cogwork.graph.name import Api, ModelName
from cogwork.logs.rules import Rules
from cogwork.modules.environment import CloudIds

_log = logging.getLogger("rdk.modmanager")

Tell = Callable[[str, Mapping[str, Any]], None]
"""Writes into the machine's story."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that a module gets for what it is asked."""

    start: float = 300.0
    """From its start until it is ready."""
    validate: float = 5.0
    add: float = 120.0
    remove: float = 5.0
    empty: float = 20.0
    """To close all that it has built, before its process is stopped."""
    probe: float = 10.0
    """For a word that it is still there; and the time between two such questions."""


@dataclass(frozen=True, slots=True)
class Ground:
    clock: Clock
    sockets: Path
    """A directory that nobody else can look into."""
    parent: str
    """Where modules reach the machine."""
    home: Path
    environment: Mapping[str, str]
    rules: Callable[[], Rules]
    """What the configuration says about the log, at this moment."""
    changed: Callable[[], None]
    """To be called when a module would offer something else."""
    tell: Tell = lambda *_: None
    in_process: Callable[[Api, ModelName], bool] = lambda *_: False
    """Whether the server has the model itself, and asks no module for it."""
    provided: dict[str, str] = field(default_factory=dict)
    """By the full name of a resource that lives in a module: the module. Others look at it."""
    cloud: CloudIds = field(default_factory=CloudIds)
    deadlines: Deadlines = field(default_factory=Deadlines)
    pauses: Pauses = field(default_factory=Pauses)
    """How long to wait before a module that failed is started again."""


def deadlines_in(environment: Mapping[str, str]) -> Deadlines:
    """As the public names of the variables say. One that is no duration counts for nothing."""
    usual = Deadlines()
    return replace(
        usual,
        start=_seconds(environment, "VIAM_MODULE_STARTUP_TIMEOUT", usual.start),
        add=_seconds(environment, "VIAM_RESOURCE_CONFIGURATION_TIMEOUT", usual.add),
    )


def _seconds(environment: Mapping[str, str], name: str, usual: float) -> float:
    text = environment.get(name, "")
    if not text:
        return usual
    try:
        seconds = duration.parse(text)
    except ValueError as error:
        _log.warning("%s has no effect: %s", name, error)
        return usual
    return seconds if seconds > 0 else usual
