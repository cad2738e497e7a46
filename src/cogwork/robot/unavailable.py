"""Errors of a call whose resource cannot be used."""

from __future__ import annotations

from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Node, NodeState


class NotConfigured(CogworkError):
    status = "NOT_FOUND"


class NotAvailable(CogworkError):
    status = "UNAVAILABLE"


class BeingChanged(NotAvailable):
    """A resource cannot be used now, but is being built or replaced."""

    def __init__(self, message: str, name: ResourceName) -> None:
        super().__init__(message)
        self.name = name


class Stopping(NotAvailable):
    """The machine is stopping. Clients keep their state and reconnect later."""

    def __init__(self) -> None:
        super().__init__("the machine is stopping; try again when it has restarted")


def explain_unavailable(node: Node) -> NotAvailable:
    """Return the error for a configured resource that is not ready."""
    name = node.spec.name
    message = f"resource {name} not available; reason={_describe_reason(node)}"
    return BeingChanged(message, name) if node.is_changing else NotAvailable(message)


def _describe_reason(node: Node) -> str:
    if node.reason is not None:
        return node.reason.text
    match node.state:
        case NodeState.REMOVING:
            return "it is being removed"
        case NodeState.READY | NodeState.CONFIGURING:
            return "it is being reconfigured; try again" if node.revision else "it is being built"
        case _:
            return "it is not built yet"
