"""Events of the graph, for the log, the event journal and tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from cogwork.core import duration
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Activity, NodeState

_log = logging.getLogger("rdk.resource_manager")


@dataclass(frozen=True, slots=True)
class StateChanged:
    name: ResourceName
    before: NodeState
    after: NodeState
    reason: str | None


@dataclass(frozen=True, slots=True)
class CallSlow:
    """A call takes long, and the graph still waits for it."""

    name: ResourceName
    activity: Activity
    elapsed: float


@dataclass(frozen=True, slots=True)
class CallAbandoned:
    """A call timed out or is obsolete, and did not return when it was cancelled."""

    name: ResourceName
    activity: Activity


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call failed, but the state of the node does not show it."""

    name: ResourceName
    activity: Activity
    error: str


Event = StateChanged | CallSlow | CallAbandoned | CallFailed
Observer = Callable[[Event], None]


def log_event(event: Event) -> None:
    """Log the event with the logger of the resource."""
    log = logging.getLogger(f"{_log.name}.{event.name}")
    match event:
        case StateChanged(name, _, NodeState.UNHEALTHY, reason):
            log.error("%s is unhealthy: %s", name, reason)
        case StateChanged(name, _, NodeState.READY, _):
            log.info("%s is ready", name)
        case StateChanged(name, _, NodeState.REMOVING, _):
            log.info("removing %s", name)
        case StateChanged(name, _, after, _):
            log.debug("%s is %s", name, after.name.lower())
        case CallSlow(name, activity, elapsed):
            log.warning("%s: still %s after %s", name, activity, duration.render(elapsed))
        case CallAbandoned(name, activity):
            log.warning("%s: gave up %s; the call has not returned yet", name, activity)
        case CallFailed(name, activity, error):
            log.warning("%s: %s failed: %s", name, activity, error)


def guard_observer(observe: Observer) -> Observer:
    """Return an observer whose errors do not stop the graph."""

    def notify(event: Event) -> None:
        try:
            observe(event)
        except Exception:
            _log.exception("an observer of the resource graph failed to handle %s", event)

    return notify
