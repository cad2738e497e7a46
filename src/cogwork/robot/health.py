"""How a resource does, as everybody is told."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from cogwork.graph.node import Node, State


@runtime_checkable
class KnowsTrouble(Protocol):
    """A resource that may lose what it stands for, and gets it back by itself."""

    @property
    def trouble(self) -> str | None:
        """What is wrong, in a sentence. Asked often: it awaits nothing."""


class Health(NamedTuple):
    state: State
    reason: str | None


def health_of(node: Node) -> Health:
    """A resource in trouble is unhealthy, but stays: those who depend on it are not rebuilt."""
    if node.state is State.READY and node.usable is not None:
        resource = node.usable.resource
        if isinstance(resource, KnowsTrouble) and isinstance(resource.trouble, str):
            return Health(State.UNHEALTHY, resource.trouble)
    return Health(node.state, node.reason.text if node.reason is not None else None)
