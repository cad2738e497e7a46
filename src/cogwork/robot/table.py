"""Everything a machine answers, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from grpclib.const import Cardinality

from cogwork.core.clock import Clock
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.clients import Elsewhere
from cogwork.resource.services import public_services, served_methods
from cogwork.robot.job_call import caller, named
from cogwork.robot.machine import Machine
from cogwork.wire.fairness import Fairness
from cogwork.wire.foreign import name_in, name_within
from cogwork.wire.handlers import HandlerTable, Method, Stream, Twin
from cogwork.wire.naming import name_field
from cogwork.wire.proxy import carry
from cogwork.wire.standard import add_standard_services


def handler_table(machine: Machine, clock: Clock, shut_down: Callable[[str], None]) -> HandlerTable:
    """`shut_down` gets the reason."""
    carried = _Carried(machine)
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


class _Carried:
    """Calls of resources that live in another process."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._public = {served.service: served.api for served in public_services()}

    def twin_of(self, method: Method) -> Twin | None:
        """Of a method of the public API."""
        api = self._public.get(method.service)
        if api is None or (method.request is None and method.cardinality.client_streaming):
            return None
        read = _name_reader(method)
        machine, nodes = self._machine, self._machine.nodes

        def takes(first: bytes) -> bool:
            node = nodes.get(ResourceName.of(api, read(first) or ""))
            held = node.usable if node is not None else None
            return held is not None and isinstance(held.resource, Elsewhere)

        async def carry_on(stream: Stream) -> None:
            first = stream.request if stream.request is not None else await stream.recv_message()
            name = ResourceName.of(api, read(first) or "")
            await self._carry(name, method.path, method.cardinality, stream, first)

        return Twin(lambda: machine.guests.are_in(), takes, carry_on)

    async def carry_unknown(self, path: str, stream: Stream) -> None:
        """Of an API that modules bring, or of one that nobody does."""
        service = path.rpartition("/")[0].lstrip("/")
        first = await stream.recv_message()
        api = self._public.get(service) or self._brought(service)
        if api is None:
            raise NotImplementedError(
                f"{path} is not served: no module of this machine brings {service}"
            )
        if name := name_in(first or b""):
            full = ResourceName.of(api, name)
            await self._carry(full, path, Cardinality.STREAM_STREAM, stream, first)
            return
        raise NotImplementedError(f"{path} is not served: its request names no resource of {api}")

    async def _carry(
        self,
        name: ResourceName,
        path: str,
        cardinality: Cardinality,
        stream: Stream,
        first: bytes | None,
    ) -> None:
        resource = self._machine.find(name)
        if not isinstance(resource, Elsewhere):
            raise NotImplementedError(
                f"{path} is not served: {name.api} is not part of this release yet"
            )
        await carry(resource.carrier, path, cardinality, stream, first)

    def _brought(self, service: str) -> Api | None:
        services = self._machine.guests.services()
        return next((api for api, name in services.items() if name == service), None)


def _name_reader(method: Method) -> Callable[[bytes], str | None]:
    """The bytes of the first field, or of the first field of the first."""
    request = method.request
    named_within = request is not None and name_field(request.DESCRIPTOR) is None
    return name_within if named_within else name_in
