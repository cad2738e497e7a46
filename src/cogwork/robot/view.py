"""The machine as programs and pages show it: one plain value per resource."""

from __future__ import annotations

from typing import Any

from cogwork.graph.name import ResourceName
from cogwork.robot.machine import Machine


def machine_view(machine: Machine) -> dict[str, Any]:
    return {
        "state": machine.state.name.lower(),
        "revision": machine.revision,
        "applied_at": machine.applied_at,
        "resources": [_resource(machine, name) for name in machine.nodes],
    }


def _resource(machine: Machine, name: ResourceName) -> dict[str, Any]:
    node = machine.nodes[name]
    return {
        "name": str(name),
        "model": node.spec.model.short if node.spec.model.name else "",
        "state": node.state.name.lower(),
        "reason": node.reason.text if node.reason is not None else None,
        "since": node.since,
        "revision": node.revision,
        "depends_on": [str(other) for other in machine.dependencies(name)],
    }
