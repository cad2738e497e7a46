"""The machine as programs and pages show it: one plain value per resource."""

from __future__ import annotations

from typing import Any

from cogwork.graph.name import ResourceName
from cogwork.robot.health import health_of
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
    health = health_of(node)
    return {
        "name": str(name),
        "model": node.spec.model.short if node.spec.model.name else "",
        "state": health.state.name.lower(),
        "reason": health.reason,
        "since": node.since,
        "revision": node.revision,
        "depends_on": [str(other) for other in machine.dependencies(name)],
    }
