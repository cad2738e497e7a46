"""What the graph tells whoever listens: the log, the machine's story, tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from cogwork.core import duration
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Doing, State


@dataclass(frozen=True, slots=True)
class StateChanged:
    name: ResourceName
    before: State
    after: State
    reason: str | None


@dataclass(frozen=True, slots=True)
class Slow:
    """Something takes long and is still waited for."""

    name: ResourceName
    doing: Doing
    elapsed: float


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Something took too long, or is no longer wanted, and did not return when asked to."""

    name: ResourceName
    doing: Doing


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something failed that the node's state does not tell."""

    name: ResourceName
    doing: Doing
    error: str


Event = StateChanged | Slow | Abandoned | Trouble
Observer = Callable[[Event], None]


def log_event(event: Event) -> None:
    """The observer that writes the log, with the logger of the resource."""
    log = logging.getLogger(f"rdk.resource_manager.{event.name}")
    match event:
        case StateChanged(name, _, State.UNHEALTHY, reason):
            log.error("%s is unhealthy: %s", name, reason)
        case StateChanged(name, _, State.READY, _):
            log.info("%s is ready", name)
        case StateChanged(name, _, State.REMOVING, _):
            log.info("removing %s", name)
        case StateChanged(name, _, after, _):
            log.debug("%s is %s", name, after.name.lower())
        case Slow(name, doing, elapsed):
            log.warning("%s: still %s after %s", name, doing, duration.render(elapsed))
        case Abandoned(name, doing):
            log.warning("%s: gave up %s; it has not returned yet", name, doing)
        case Trouble(name, doing, error):
            log.warning("%s: %s failed: %s", name, doing, error)
