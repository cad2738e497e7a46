"""The health of a resource, as the machine reports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cogwork.graph.node import Node, State


class Health(NamedTuple):
    state: State
    reason: str | None


def health_of(node: Node, redact: Callable[[str], str] = str) -> Health:
    """Return the health of a resource.

    A resource that may lose its device and recovers on its own has an attribute `trouble`: one
    sentence about what is wrong, or None. While it is set, the resource is reported as unhealthy
    but is not replaced, so its dependents are not rebuilt. It is read often, so reading it must be
    cheap. `redact` removes secrets from it.
    """
    if node.state is State.READY and node.usable is not None:
        # A runtime-checkable protocol would take ten times as long as the rest of a status.
        trouble = getattr(node.usable.resource, "trouble", None)
        if isinstance(trouble, str):
            return Health(State.UNHEALTHY, redact(trouble))
    return Health(node.state, node.reason.text if node.reason is not None else None)
