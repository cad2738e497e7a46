"""Builds the handler table of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from cogwork.core.clock import Clock
from cogwork.graph.name import Api
from cogwork.resource.services import load_methods, public_services
from cogwork.robot.job_call import make_job_call, resolve_name
from cogwork.robot.machine import Machine
from cogwork.robot.module_proxy import ModuleProxy
from cogwork.wire.concurrency_limit import ConcurrencyLimiter
from cogwork.wire.grpc_services import add_standard_services
from cogwork.wire.handlers import HandlerTable, Method
from cogwork.wire.redacted_errors import redact_errors


def build_handler_table(
    machine: Machine, clock: Clock, shut_down: Callable[[str], None]
) -> HandlerTable:
    """Return the table of all methods. `shut_down` is called with the reason."""
    proxy = ModuleProxy(machine)
    table = HandlerTable(
        middleware=(
            redact_errors(machine.redact),
            machine.operations.wrap,
            machine.access.wrap,
            ConcurrencyLimiter(clock).wrap,
            machine.sessions.wrap,
        ),
        fallback=proxy.forward_unknown,
        make_proxy_route=proxy.make_proxy_route,
    )
    for served in public_services():
        if served.is_served:
            table.add(served.service, partial(load_methods, served, machine.find))
    services = {served.api: served.service for served in public_services()}
    table.add(
        "viam.robot.v1.RobotService",
        lambda: _load_robot_methods(machine, services, clock, shut_down),
    )
    add_standard_services(table, lambda: machine.modules.descriptor_pools())
    machine.job_call = make_job_call(
        table, services, lambda text: resolve_name(text, machine.nodes), lambda: machine.modules
    )
    return table


def _load_robot_methods(
    machine: Machine,
    services: Mapping[Api, str],
    clock: Clock,
    shut_down: Callable[[str], None],
) -> Iterable[Method]:
    # Imported on the first call, so that a machine starts without the SDK.
    from cogwork.robot.robot_service import robot_methods

    return robot_methods(machine, services, clock, shut_down)
