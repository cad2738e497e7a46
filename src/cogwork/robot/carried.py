"""Calls of resources that live in another process: carried on as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from grpclib.const import Cardinality

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.clients import Elsewhere
from cogwork.resource.services import public_services
from cogwork.robot.machine import Machine, NotAvailable
from cogwork.robot.operations import LONGEST, TookTooLong
from cogwork.wire.first import first_message
from cogwork.wire.foreign import name_in, name_within
from cogwork.wire.handlers import Method, Stream, Twin
from cogwork.wire.naming import name_field
from cogwork.wire.proxy import carry


class Carried:
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
        service, _, method = path.lstrip("/").rpartition("/")
        api = self._public.get(service) or self._brought(service)
        if api is None:
            raise self._not_brought(path, service)
        first = await first_message(stream, path)
        if not (name := name_in(first)):
            raise InvalidRequest(
                f"{path} names no resource: the first field of its request is a name of {api}"
            )
        full = ResourceName.of(api, name)
        if self._replies_once(service, method):
            await self._carry_once(full, path, stream, first)
        else:
            await self._carry(full, path, Cardinality.STREAM_STREAM, stream, first)

    async def _carry_once(
        self, name: ResourceName, path: str, stream: Stream, request: bytes
    ) -> None:
        """The machine, which takes it for a stream, would let it go on for ever."""
        longest = LONGEST if stream.deadline is None else None
        try:
            async with asyncio.timeout(longest) as limit:
                await self._carry(name, path, Cardinality.UNARY_UNARY, stream, request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TookTooLong(
                f"{path} was ended after {LONGEST:g}s; set a deadline of your own for calls that "
                "take longer"
            ) from None

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

    def _not_brought(self, path: str, service: str) -> CogworkError | NotImplementedError:
        if awaited := self._machine.guests.awaited():
            return NotAvailable(f"{path} is not served yet: {awaited}")
        return NotImplementedError(
            f"{path} is not served: no module of this machine brings {service}"
        )

    def _replies_once(self, service: str, method: str) -> bool:
        """As far as its module has said so."""
        pool: Any = self._machine.guests.descriptions().get(service)
        if pool is None:
            return False
        described = pool.FindServiceByName(service).methods_by_name.get(method)
        return described is not None and not (
            described.client_streaming or described.server_streaming
        )


def _name_reader(method: Method) -> Callable[[bytes], str | None]:
    """The bytes of the first field, or of the first field of the first."""
    request = method.request
    named_within = request is not None and name_field(request.DESCRIPTOR) is None
    return name_within if named_within else name_in
