"""The health of a resource, as the machine reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from cogwork.graph.node import Node, NodeState


class ResourceHealth(NamedTuple):
    state: NodeState
    reason: str | None


def health_of(node: Node, redact: Callable[[str], str] = str) -> ResourceHealth:
    """Return the health of a resource.

    If the resource implements `ReportsFault`, the health includes its `fault`. `redact` removes
    secrets from the fault.
    """
    if node.state is NodeState.READY and node.usable is not None:
        # `isinstance` with a runtime-checkable protocol would be ten times as slow as the rest.
        fault = getattr(node.usable.resource, "fault", None)
        if isinstance(fault, str):
            return ResourceHealth(NodeState.UNHEALTHY, redact(fault))
    return ResourceHealth(node.state, node.reason.text if node.reason is not None else None)


def count_ready(nodes: Iterable[Node]) -> tuple[int, int]:
    """Return how many resources the status shows as ready, and how many as not ready.

    Default services are not counted: the counts are about what the file configures.
    """
    ready = [health_of(node).state is NodeState.READY for node in nodes if not node.spec.is_default]
    return sum(ready), len(ready) - sum(ready)
