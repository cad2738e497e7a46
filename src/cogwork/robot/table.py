"""Everything a machine answers, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from cogwork.core.clock import Clock
from cogwork.graph.name import Api
from cogwork.resource.services import public_services, served_methods
from cogwork.robot.carried import Carried
from cogwork.robot.job_call import caller, named
from cogwork.robot.machine import Machine
from cogwork.wire.fairness import Fairness
from cogwork.wire.handlers import HandlerTable, Method
from cogwork.wire.standard import add_standard_services


def handler_table(machine: Machine, clock: Clock, shut_down: Callable[[str], None]) -> HandlerTable:
    """`shut_down` gets the reason."""
    carried = Carried(machine)
    table = HandlerTable(
        around=(machine.operations.around, Fairness(clock).around, machine.sessions.around),
        unknown=carried.carry_unknown,
        twin_of=carried.twin_of,
    )
    for served in public_services():
        if served.is_served:
            table.add(served.service, partial(served_methods, served, machine.find))
    services = {served.api: served.service for served in public_services()}
    table.add("viam.robot.v1.RobotService", lambda: _robot(machine, services, shut_down))
    add_standard_services(table, lambda: machine.guests.descriptions())
    machine.call_for_job = caller(
        table, services, lambda text: named(text, machine.nodes), lambda: machine.guests
    )
    return table


def _robot(
    machine: Machine, services: Mapping[Api, str], shut_down: Callable[[str], None]
) -> Iterable[Method]:
    # Imported when it is first called: a machine starts without the SDK.
    from cogwork.robot.service import robot_methods

    return robot_methods(machine, services, shut_down)
