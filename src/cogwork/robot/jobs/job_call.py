"""Calls the method of a job: one method of one resource, as a client would call it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from cogwork.auth.roles import Role
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.config.schema.machine import JobConfig
from cogwork.core.errors import InvalidRequest, NotFound, Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.resource.messages.structs import to_struct_async
from cogwork.robot.hosts import NoModules
from cogwork.robot.jobs.job_scheduler import MAX_RUN_SECONDS, JobCall
from cogwork.robot.middleware.authentication import role_of
from cogwork.wire.messages.resource_field import NAME_FIELDS, name_field
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports import in_process_call

FindName = Callable[[str], ResourceName]


class CustomServices(Protocol):
    """The gRPC services of custom APIs, which modules and remotes provide."""

    def services(self) -> Mapping[Api, str]: ...

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]: ...


def make_job_call(
    table: HandlerTable, find_name: FindName, custom: Callable[[], CustomServices] = NoModules
) -> JobCall:
    """Return the function that performs a job."""

    async def call(config: JobConfig) -> None:
        await find_job_method(table, find_name, custom(), config).call(config)

    return call


@dataclass(frozen=True, slots=True)
class JobMethod:
    """A method of a resource, as a job calls it."""

    table: HandlerTable
    resource: ResourceName
    descriptor: MethodDescriptor

    @property
    def role(self) -> Role:
        """The role of clients that may run the job: an operator, or an owner if the method requires
        one."""
        method = self.table.find(self._path)
        return max(Role.OPERATOR, role_of(method)) if method is not None else Role.OWNER

    async def call(self, config: JobConfig) -> None:
        request = await _build_request(self.descriptor, self.resource, config)
        await in_process_call.call(
            self.table, self._path, request, peer=f"job:{config.name}", timeout=MAX_RUN_SECONDS
        )

    @property
    def _path(self) -> str:
        return f"/{self.descriptor.containing_service.full_name}/{self.descriptor.name}"


def find_job_method(
    table: HandlerTable, find_name: FindName, custom: CustomServices, config: JobConfig
) -> JobMethod:
    """Return the method that a job calls now. Raise CogworkError if it is not found."""
    name = find_name(config.resource)
    return JobMethod(table, name, _find_method(table, name.api, custom, config.method))


def resolve_name(text: str, names: Iterable[ResourceName]) -> ResourceName:
    """Return the one resource with this short or full name.

    The name of a remote's resource may omit the remote, as in calls of clients.
    """
    if "/" in text:
        return ResourceName.parse(text)
    known = list(names)
    found = [name for name in known if name.short == text]
    found = found or [name for name in known if name.name == text]
    if not found:
        hint = did_you_mean(text, [name.short for name in known]) or "add it to the configuration"
        raise NotFound(f'there is no resource "{text}"; {hint}')
    if len(found) > 1:
        choices = " or ".join(f'"{name}"' for name in found)
        raise InvalidRequest(f'several resources are named "{text}"; use {choices}')
    return found[0]


def _find_method(
    table: HandlerTable, api: Api, custom: CustomServices, name: str
) -> MethodDescriptor:
    service = _find_public_service(table, api) or _find_custom_service(custom, api)
    return _find_unary_method(service, name)


def _find_public_service(table: HandlerTable, api: Api) -> ServiceDescriptor | None:
    service = SERVICE_BY_API.get(api)
    if service is None or service not in table.services():
        return None
    # Load the methods first: the descriptor is imported together with them.
    table.load(service)
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    found: ServiceDescriptor = pool.FindServiceByName(service)
    return found


def _find_custom_service(custom: CustomServices, api: Api) -> ServiceDescriptor:
    service = custom.services().get(api)
    if service is None:
        raise Unsupported(f"{api} is not served by this machine")
    pool: Any = custom.descriptor_pools().get(service)
    if pool is None:
        raise Unsupported(
            f"the module or remote that provides {service} does not describe its methods; add gRPC "
            "reflection to that module or remote"
        )
    found: ServiceDescriptor = pool.FindServiceByName(service)
    return found


def _find_unary_method(service: ServiceDescriptor, wanted: str) -> MethodDescriptor:
    method: MethodDescriptor | None = service.methods_by_name.get(wanted)
    if method is not None and not _is_streaming(method):
        return method
    reason = f'has no method "{wanted}"' if method is None else f'serves "{wanted}" as a stream'
    choices = ", ".join(each.name for each in service.methods if _needs_no_arguments(each))
    raise Unsupported(f"{service.full_name} {reason}; a job can call {choices}")


def _needs_no_arguments(method: MethodDescriptor) -> bool:
    """Return whether a job can call the method: the request needs only a name or the job's
    command."""
    needed = {each.name for each in method.input_type.fields} - {*NAME_FIELDS, "extra"}
    return not _is_streaming(method) and (not needed or method.name == "DoCommand")


def _is_streaming(method: MethodDescriptor) -> bool:
    return bool(method.client_streaming or method.server_streaming)


async def _build_request(
    method: MethodDescriptor, name: ResourceName, config: JobConfig
) -> Message:
    request: Any = GetMessageClass(method.input_type)()
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, name.short)
    if method.name == "DoCommand":
        command = await to_struct_async(config.command)
        # The generated Struct class of a module differs from ours, so copy by serializing.
        request.command.MergeFromString(command.SerializeToString())
    message: Message = request
    return message
