"""What a job does: one call of one method of one resource, as a client of the machine makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from cogwork.config.diagnose import did_you_mean
from cogwork.config.schema import JobConfig
from cogwork.core.errors import InvalidRequest, NotFound, Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.structs import to_struct_aside
from cogwork.robot.guests import Guests, NoGuests
from cogwork.robot.jobs import LONGEST_RUN, Call
from cogwork.wire import local
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.naming import NAMES, name_field

FindName = Callable[[str], ResourceName]


def caller(
    table: HandlerTable,
    services: Mapping[Api, str],
    find_name: FindName,
    guests: Callable[[], Guests] = NoGuests,
) -> Call:
    """The services carry the APIs that the machine knows; others, the guests bring."""

    async def call(config: JobConfig) -> None:
        name = find_name(config.resource)
        service = _public(table, services, name.api) or _brought(guests(), name.api)
        method = _method(service, config.method)
        path = f"/{method.containing_service.full_name}/{method.name}"
        request = await _request(method, name, config)
        await local.call(table, path, request, peer=f"job:{config.name}", timeout=LONGEST_RUN)

    return call


def named(text: str, names: Iterable[ResourceName]) -> ResourceName:
    """The one resource that somebody means by its short or its full name."""
    if "/" in text:
        return ResourceName.parse(text)
    known = list(names)
    found = [name for name in known if name.short == text]
    if not found:
        hint = did_you_mean(text, [name.short for name in known]) or "configure it"
        raise NotFound(f'there is no resource "{text}"; {hint}')
    if len(found) > 1:
        choices = " or ".join(f'"{name}"' for name in found)
        raise InvalidRequest(f'several resources are called "{text}": write {choices}')
    return found[0]


def _public(table: HandlerTable, services: Mapping[Api, str], api: Api) -> ServiceDescriptor | None:
    service = services.get(api)
    if service is None or service not in table.services():
        return None
    # Its description comes with its methods.
    table.load(service)
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    found: ServiceDescriptor = pool.FindServiceByName(service)
    return found


def _brought(guests: Guests, api: Api) -> ServiceDescriptor:
    service = guests.services().get(api)
    if service is None:
        raise Unsupported(f"{api} is not served by this machine")
    pool: Any = guests.descriptions().get(service)
    if pool is None:
        raise Unsupported(f"{service} is not described by the module that brings it")
    found: ServiceDescriptor = pool.FindServiceByName(service)
    return found


def _method(service: ServiceDescriptor, wanted: str) -> MethodDescriptor:
    method: MethodDescriptor | None = service.methods_by_name.get(wanted)
    if method is not None and not _streams(method):
        return method
    why = f'has no method "{wanted}"' if method is None else f'streams "{wanted}"'
    choices = ", ".join(each.name for each in service.methods if _asks_for_nothing(each))
    raise Unsupported(f"{service.full_name} {why}; a job can call {choices}")


def _asks_for_nothing(method: MethodDescriptor) -> bool:
    """Whether it needs to be told no more than whom it is for, or what the job says."""
    needed = {each.name for each in method.input_type.fields} - {*NAMES, "extra"}
    return not _streams(method) and (not needed or method.name == "DoCommand")


def _streams(method: MethodDescriptor) -> bool:
    return bool(method.client_streaming or method.server_streaming)


async def _request(method: MethodDescriptor, name: ResourceName, config: JobConfig) -> Message:
    request: Any = GetMessageClass(method.input_type)()
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, name.short)
    if method.name == "DoCommand":
        command = await to_struct_aside(config.command)
        # A module that describes its own service has a Struct of its own, too.
        request.command.MergeFromString(command.SerializeToString())
    made: Message = request
    return made
