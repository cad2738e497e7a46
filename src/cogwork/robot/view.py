"""The machine as programs and pages show it: one plain value per resource."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cogwork.graph.name import ResourceName
from cogwork.robot.guests import GuestState, GuestStatus
from cogwork.robot.health import health_of
from cogwork.robot.machine import Machine


def machine_view(machine: Machine) -> dict[str, Any]:
    return {
        "state": machine.state.name.lower(),
        "revision": machine.revision,
        "applied_at": machine.applied_at,
        "resources": [_resource(machine, name) for name in machine.nodes],
        "modules": [_module(status) for status in machine.guests.statuses()],
        "jobs": [asdict(record) for record in machine.jobs.statuses()],
    }


def _module(status: GuestStatus) -> dict[str, Any]:
    return {
        "name": status.name,
        "state": GuestState(status.state).name.lower(),
        "reason": status.error or None,
        "since": status.since,
        "failures": status.failures,
        "starts": status.starts,
        "pid": status.pid,
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
