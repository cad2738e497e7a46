"""The status of the machine as plain data, for programs and web pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cogwork.config.source.config_report import ConfigReport
from cogwork.graph.name import Reference, ResourceName
from cogwork.robot.hosts import ModuleState, ModuleStatus, ProcessStatus
from cogwork.robot.machine import Machine
from cogwork.robot.motion.claims import Claim
from cogwork.robot.status.health import health_of
from cogwork.robot.status.process_use import ProcessUse
from cogwork.robot.status.server_load import LoadSample
from cogwork.robot.status.server_report import MaintenanceDenial, ServerReport

_BATCH_SIZE = 100
"""Number of resources to process before yielding to the event loop."""


async def build_status_view(machine: Machine, report: ServerReport) -> dict[str, Any]:
    modules = list(machine.modules.statuses())
    processes = list(machine.processes.statuses())
    pids = [*(each.pid for each in modules), *(each.pid for each in processes)]
    load = report.load.sample([pid for pid in pids if pid is not None])
    return {
        "state": machine.state.name.lower(),
        "revision": machine.revision,
        "applied_at": machine.applied_at,
        "configuration": _config_view(report.config, machine.redact),
        "maintenance_denied": _maintenance_view(report.maintenance_denial),
        "updates": await report.updates.read(),
        "tls": report.tls._asdict() if report.tls is not None else None,
        "cloud_notices": list(report.list_cloud_notices()),
        "server": _server_view(machine, load, report.load.loop_lag.read()),
        "resources": await _build_resource_views(machine),
        "modules": [_module_view(status, load) for status in modules],
        "processes": [_process_view(status, load) for status in processes],
        "packages": [status._asdict() for status in machine.packages.statuses()],
        "jobs": [asdict(record) for record in machine.jobs.statuses()],
    }


def _config_view(
    report: ConfigReport | None, redact: Callable[[str], str]
) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        **report._asdict(),
        "diagnostics": [
            {
                key: redact(value) if isinstance(value, str) else value
                for key, value in diagnostic.items()
            }
            for diagnostic in report.diagnostics
        ],
    }


def _maintenance_view(denial: MaintenanceDenial | None) -> dict[str, Any] | None:
    return {"reason": denial.reason, "since": denial.since} if denial is not None else None


async def _build_resource_views(machine: Machine) -> list[dict[str, Any]]:
    # Leave out default services: people count the resources of their file.
    names = [name for name in machine.nodes if not _is_default(machine, name)]
    views: list[dict[str, Any]] = []
    for start in range(0, len(names), _BATCH_SIZE):
        if start:
            await asyncio.sleep(0)
        batch = [name for name in names[start : start + _BATCH_SIZE] if name in machine.nodes]
        views.extend(_resource_view(machine, name) for name in batch)
    return views


def _server_view(machine: Machine, load: LoadSample, loop_lag: float | None) -> dict[str, Any]:
    return {
        **load.server._asdict(),
        "loop_lag_seconds": loop_lag,
        "calls_started": machine.operations.started_count,
        "calls_running": machine.operations.running_count,
        "sessions": machine.sessions.count,
        "computer": load.computer._asdict(),
    }


def _module_view(status: ModuleStatus, load: LoadSample) -> dict[str, Any]:
    return {
        "name": status.name,
        "state": ModuleState(status.state).name.lower(),
        "reason": status.error or None,
        "since": status.since,
        "failures": status.failures,
        "starts": status.starts,
        "pid": status.pid,
        **_use_view(status.pid, load),
    }


def _process_view(status: ProcessStatus, load: LoadSample) -> dict[str, Any]:
    return {
        "id": status.id,
        "state": status.state.value,
        "reason": status.error or None,
        "since": status.since,
        "restarts": status.restarts,
        "pid": status.pid,
        **_use_view(status.pid, load),
    }


def _use_view(pid: int | None, load: LoadSample) -> dict[str, Any]:
    use = load.programs.get(pid) if pid is not None else None
    return use._asdict() if use is not None else dict.fromkeys(ProcessUse._fields)


def _resource_view(machine: Machine, name: ResourceName) -> dict[str, Any]:
    node = machine.nodes[name]
    health = health_of(node, machine.redact)
    return {
        "name": str(name),
        "model": node.spec.model.short if node.spec.model.name else "",
        "state": health.state.name.lower(),
        "reason": health.reason,
        "ignored_settings": machine.list_ignored(name),
        "since": node.since,
        "revision": node.revision,
        "depends_on": [
            str(other) for other in machine.dependencies(name) if not _is_default(machine, other)
        ],
        "moved_by": _mover_view(machine.sessions.claims.find(name)),
    }


def _is_default(machine: Machine, name: ResourceName | Reference) -> bool:
    node = machine.nodes.get(name) if isinstance(name, ResourceName) else None
    return node is not None and node.spec.is_default


def _mover_view(claim: Claim | None) -> dict[str, Any] | None:
    """Return the caller that last moved a resource; None if it was stopped since."""
    if claim is None:
        return None
    return {"who": claim.mover, "session": claim.session.label if claim.session else None}
