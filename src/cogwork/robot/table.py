"""Everything a machine answers, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from cogwork.core.clock import Clock
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.services import public_services, served_methods
from cogwork.robot.machine import Machine
from cogwork.wire.fairness import Fairness
from cogwork.wire.foreign import name_in
from cogwork.wire.handlers import HandlerTable, Method, Stream
from cogwork.wire.standard import add_standard_services


def handler_table(machine: Machine, clock: Clock, shut_down: Callable[[str], None]) -> HandlerTable:
    """`shut_down` gets the reason."""
    apis = {served.service: served.api for served in public_services()}
    table = HandlerTable(
        around=(machine.operations.around, Fairness(clock).around),
        unknown=partial(_refuse, machine, apis),
    )
    for served in public_services():
        if served.is_served:
            table.add(served.service, partial(served_methods, served, machine.find))
    services = {api: service for service, api in apis.items()}
    table.add("viam.robot.v1.RobotService", lambda: _robot(machine, services, shut_down))
    add_standard_services(table)
    return table


def _robot(
    machine: Machine, services: dict[Api, str], shut_down: Callable[[str], None]
) -> Iterable[Method]:
    # Imported when it is first called: a machine starts without the SDK.
    from cogwork.robot.service import robot_methods

    return robot_methods(machine, services, shut_down)


async def _refuse(machine: Machine, apis: dict[str, Api], path: str, stream: Stream) -> None:
    """Until modules bring services of their own, the reason is all there is to give."""
    service = path.rpartition("/")[0].lstrip("/")
    name = name_in(await stream.recv_message() or b"")
    api = apis.get(service)
    if api is None:
        raise NotImplementedError(
            f"{path} is not served: no module of this machine brings {service}"
        )
    if name:
        full = ResourceName.of(api, name)
        if full not in machine.nodes or machine.nodes[full].usable is None:
            raise machine.why_not(full)
    raise NotImplementedError(f"{path} is not served: {api} is not part of this release yet")
